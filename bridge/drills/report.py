"""The report of a drill: who got it, who approved and how early, who did not vote; pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bridge.core.cloudevent import short_type
from bridge.core.ids import timestamp
from bridge.policy.drill import Drill, DrillVotes
from bridge.policy.require import ANY_APPROVER
from bridge.policy.votes import Vote

_Json = dict[str, Any]
_FINE = frozenset({"delivered", "filtered"})


def report(
    drill: Drill, ballot: DrillVotes, votes: Sequence[Vote], history: Sequence[_Json]
) -> _Json:
    """The whole report, as the API returns it.

    *ballot* has the current votes, used until the drill has stored its own; *history* is every
    CloudEvent about it, with its deliveries.
    """
    ballot = drill.ballot or ballot
    sinks = [_sink(drill, one, history) for one in drill.sinks]
    refused = [_refusal(drill, row["cloudevent"]) for row in history if _is_refusal(row)]
    problems = [*_approval_problems(drill, ballot), *_sink_problems(sinks)]
    return {
        **summary(drill),
        "notBefore": timestamp(drill.due),
        "approveBy": timestamp(drill.approve_by),
        "startedAt": _moment(drill.started_at),
        "settled": not any(one["cloudEvents"].get("waiting") for one in sinks),
        "passed": not problems if drill.over else None,
        "verdict": _verdict(drill, ballot, problems),
        "azure": _azure(drill, ballot),
        "approvals": {
            "policy": ballot.policy,
            "satisfied": ballot.satisfied,
            "have": list(ballot.have),
            "missing": list(ballot.missing),
            "holds": list(ballot.holds),
            "silent": _silent(ballot, votes, refused),
            "votes": [_vote(drill, one) for one in votes],
            "refused": refused,
        },
        "sinks": sinks,
    }


def summary(drill: Drill) -> _Json:
    """The report in short, for a list."""
    event = drill.known.event
    return {
        "eventId": drill.key,
        "eventType": event.event_type,
        "resources": list(event.resources),
        "description": event.description,
        "status": drill.status.capitalize(),
        "noticeSeconds": round((drill.due - drill.begun_at).total_seconds(), 3),
        "begunBy": drill.actor,
        "via": drill.via,
        "begunAt": timestamp(drill.begun_at),
        "endedAt": _moment(drill.ended_at),
        "href": f"/api/v1/drills/{drill.key}",
    }


def _moment(value: datetime | None) -> str | None:
    return timestamp(value) if value else None


def _early(drill: Drill, moment: datetime) -> float:
    """Seconds before approveBy; negative if it was later."""
    return round((drill.approve_by - moment).total_seconds(), 3)


def _azure(drill: Drill, ballot: DrillVotes) -> _Json:
    """When Azure would have been notified in a real event."""
    enough = ballot.since if ballot.since and ballot.since < drill.due else None
    told = None if ballot.dry_run else enough
    return {
        "told": False,
        "wouldBeTold": told is not None,
        "at": _moment(told),
        "secondsBeforeApproveBy": _early(drill, told) if told else None,
        "dryRun": ballot.dry_run,
    }


def _vote(drill: Drill, vote: Vote) -> _Json:
    return {
        "approver": vote.approver,
        "resource": vote.resource or None,
        "decision": vote.decision,
        "reason": vote.reason,
        "verified": vote.verified,
        "via": vote.via,
        "at": timestamp(vote.at),
        "secondsBeforeApproveBy": _early(drill, vote.at),
    }


def _is_refusal(row: _Json) -> bool:
    return short_type(str(row["cloudevent"]["type"])) == "approval.refused"


def _refusal(drill: Drill, cloudevent: _Json) -> _Json:
    data = cloudevent["data"]
    names = ("approver", "resource", "decision", "reason", "detail", "verified", "via")
    at = datetime.fromisoformat(cloudevent["time"])
    early = {"at": cloudevent["time"], "secondsBeforeApproveBy": _early(drill, at)}
    return {**{name: data[name] for name in names}, **early}


def _silent(ballot: DrillVotes, votes: Sequence[Vote], refused: Sequence[_Json]) -> list[str]:
    """The listed approvers that sent nothing, not even a vote that did not count."""
    spoke = {vote.approver for vote in votes} | {one["approver"] for one in refused}
    return [name for name in ballot.expected if name not in spoke]


def _sink(drill: Drill, sink: tuple[str, str, bool], history: Sequence[_Json]) -> _Json:
    name, kind, required = sink
    found = [_delivery(name, row) for row in history]
    first = found[0] if found else {}
    outcomes = Counter(one.get("outcome") or "waiting" for one in found)
    outcome = first.get("outcome") or "waiting"
    arrived = _arrival(outcome, found)
    return {
        "sink": name,
        "type": kind,
        "required": required,
        "outcome": outcome,
        "at": _moment(arrived),
        "seconds": _took(drill, arrived),
        "inTime": arrived is not None and arrived <= drill.due,
        "attempts": first.get("attempts", 0),
        "error": None if outcome in _FINE else first.get("error"),
        "cloudEvents": dict(sorted(outcomes.items())),
    }


def _arrival(outcome: str, found: Sequence[Mapping[str, Any]]) -> datetime | None:
    """When the announcement arrived, or the later CloudEvent that replaced it."""
    if outcome not in {"delivered", "overtaken"}:
        return None
    first = next((one["at"] for one in found if one.get("outcome") == "delivered"), None)
    return None if first is None else datetime.fromtimestamp(first, UTC)


def _delivery(sink: str, row: _Json) -> Mapping[str, Any]:
    return next((one for one in row["deliveries"] if one["sink"] == sink), {})


def _took(drill: Drill, arrived: datetime | None) -> float | None:
    if arrived is None:
        return None
    return round(max(timedelta(), arrived - drill.begun_at).total_seconds(), 3)


def _approval_problems(drill: Drill, ballot: DrillVotes) -> Iterator[str]:
    if drill.status == "canceled":
        yield "the drill was stopped early"
    elif ballot.holds:
        yield f"held by {', '.join(ballot.holds)}"
    elif not ballot.satisfied or ballot.since is None:
        lacking = "nobody" if ballot.missing == ANY_APPROVER else "not everyone"
        names = "" if ballot.missing == ANY_APPROVER else f"; missing: {', '.join(ballot.missing)}"
        yield f"{lacking} approved in time{names}"
    elif ballot.since > drill.approve_by:
        late = span(-_early(drill, ballot.since))
        yield f"the approvals were enough only {late} after approveBy"


def _sink_problems(sinks: Sequence[_Json]) -> Iterator[str]:
    for one in sinks:
        if not one["required"] or one["outcome"] == "filtered" or one["inTime"]:
            continue
        why = f": {one['error']}" if one["error"] else ""
        late = "got it only after notBefore" if one["outcome"] == "delivered" else "did not get it"
        yield f"sink {one['sink']} {late}{why}"


def _verdict(drill: Drill, ballot: DrillVotes, problems: Sequence[str]) -> str:
    if not drill.over:
        return "The drill is still running."
    if problems:
        return f"Failed: {'; '.join(problems)}."
    early = span(_early(drill, ballot.since)) if ballot.since else "0s"
    sentence = f"Passed: the approvals were enough {early} before approveBy"
    if any(required for _, _, required in drill.sinks):
        sentence += ", and every required sink got the announcement in time"
    return f"{sentence}."


def span(seconds: float) -> str:
    """`14m 41s`, `7s`, `2.3s`, `12ms`."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    if seconds < 10:
        return f"{seconds:.1f}s".replace(".0s", "s")
    hours, rest = divmod(round(seconds), 3600)
    minutes, left = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (left, "s"))
    return " ".join(f"{count}{unit}" for count, unit in parts if count)
