"""The JSON objects of the API, as pure functions of the journal's content."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from bridge.core import messages
from bridge.core.ids import timestamp
from bridge.core.observer import Observer
from bridge.core.state import Tracked
from bridge.journal.cursors import Backlog, DeadLetter
from bridge.journal.grants import GrantState
from bridge.policy.judge import Judgment, Rules
from bridge.policy.votes import Vote
from bridge.runtime.refusals import UnpublishedRefusal
from bridge.runtime.status import SinkStatus

_Json = dict[str, Any]
_TOLD = (
    "eventId",
    "eventType",
    "status",
    "resourceType",
    "resources",
    "notBefore",
    "approveBy",
    "noticeSeconds",
    "description",
    "eventSource",
    "durationInSeconds",
    "state",
)


def moment(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(datetime.fromtimestamp(seconds, UTC))


class Standing(NamedTuple):
    """The votes on a pending event, judged: *held* are the holds in force with their ends."""

    judgment: Judgment
    held: Sequence[tuple[Vote, datetime]]
    votes: int
    grant: GrantState | None


def approvals_on(standing: Standing, rules: Rules) -> _Json:
    """Who approved, who is missing under the policy, and who holds until when."""
    found = standing.judgment
    return {
        "require": str(rules.require),
        "dryRun": rules.dry_run,
        "satisfied": found.satisfied,
        "have": list(found.have),
        "missing": list(found.missing),
        "holds": [_hold(vote, until) for vote, until in standing.held],
        "votes": standing.votes,
        "grant": standing.grant,
        "local": found.local,
    }


def _hold(vote: Vote, until: datetime) -> _Json:
    return {
        "approver": vote.approver,
        "resource": vote.resource or None,
        "reason": vote.reason,
        "at": timestamp(vote.at),
        "until": timestamp(until),
    }


def times(milestones: Mapping[str, _Json]) -> _Json:
    """When what happened in the event's latest life, and how long that took."""
    at = {kind: one["time"] for kind, one in milestones.items()}
    announced = at.get("scheduled") or at.get("started")
    granted, started = at.get("approval.granted"), at.get("started")
    ended = at.get("completed") or at.get("canceled")
    notice = milestones["scheduled"]["data"]["noticeSeconds"] if "scheduled" in at else None
    return {
        "announced": announced,
        "granted": granted,
        "started": started,
        "ended": ended,
        "noticeSeconds": notice,
        "approvalSeconds": _between(announced, granted),
        "durationSeconds": _between(started, at.get("completed")),
    }


def _between(first: str | None, second: str | None) -> float | None:
    if first is None or second is None:
        return None
    taken = datetime.fromisoformat(second) - datetime.fromisoformat(first)
    return round(taken.total_seconds(), 3)


def event(
    key: str, told: _Json | None, known: Tracked | None, observer: Observer, now: datetime
) -> _Json:
    """One scheduled event: as Azure shows it now, or as we last published it."""
    data = told["data"] if told else {}
    if known is not None:
        body = messages.pending(known.event, observer, now)
        affected = known.affected
    else:
        body = {name: data.get(name) for name in _TOLD}
        affected = data.get("observer", {}).get("affected")
    return {
        **body,
        "life": known.life if known is not None else data.get("life"),
        "pending": known is not None,
        "affected": affected,
        "inferred": data.get("inferred", False),
        "drill": known.drill if known is not None else data.get("drill", False),
        "lastType": told["type"] if told else None,
        "lastChange": told["time"] if told else None,
        "href": f"/api/v1/events/{key}",
    }


def history(rows: list[_Json]) -> list[_Json]:
    """CloudEvents with their deliveries; a delivery without an outcome is still waiting."""
    return [
        {
            "cloudevent": row["cloudevent"],
            "deliveries": [
                {**one, "outcome": one["outcome"] or "waiting", "at": moment(one["at"])}
                for one in row["deliveries"]
            ],
        }
        for row in rows
    ]


def vote(cast: Vote) -> _Json:
    return {
        "eventId": cast.event_key,
        "approvalId": cast.approval,
        "approver": cast.approver,
        "resource": cast.resource or None,
        "decision": cast.decision,
        "reason": cast.reason,
        "verified": cast.verified,
        "via": cast.via,
        "at": timestamp(cast.at),
    }


def refusals(published: list[_Json], kept: list[UnpublishedRefusal], event_id: str) -> list[_Json]:
    """The refused votes on one event, the oldest first; *published* are its CloudEvents."""
    told = [_refusal(one, stray=False) for one in published]
    unpublished = [_refusal(one.cloudevent.envelope, stray=one.stray) for one in reversed(kept)]
    told += [one for one in unpublished if (one["eventId"] or "").upper() == event_id]
    return sorted(told, key=lambda one: str(one["at"]))


def approvals(
    cast: list[Vote], published: list[_Json], kept: list[UnpublishedRefusal]
) -> list[_Json]:
    """Votes, published refusals and those that were not published, the newest first."""
    told = [_counted(one) for one in cast]
    told += [_refusal(one, stray=False) for one in published]
    told += [_refusal(one.cloudevent.envelope, stray=one.stray) for one in kept]
    return sorted(told, key=lambda one: str(one["at"]), reverse=True)


def _counted(cast: Vote) -> _Json:
    more = {"outcome": "recorded", "detail": None, "position": cast.position, "stray": False}
    return {**vote(cast), **more}


def _refusal(cloudevent: _Json, *, stray: bool) -> _Json:
    data = cloudevent["data"]
    names = ("eventId", "approvalId", "approver", "resource", "decision", "reason", "verified")
    said = {name: data[name] for name in (*names, "via")}
    more = {"outcome": "refused", "detail": data["detail"], "position": data["position"]}
    return {**said, "at": cloudevent["time"], **more, "stray": stray}


def sink(name: str, status: SinkStatus, backlog: Backlog) -> _Json:
    return {
        "name": name,
        "type": status.type,
        "required": status.required,
        "state": status.state,
        "since": moment(status.since or None),
        "waiting": backlog.waiting,
        "oldest": moment(backlog.oldest),
        "delivered": backlog.delivered,
        "dead": backlog.dead,
        "error": status.error,
    }


def dead_letter(letter: DeadLetter) -> _Json:
    return {
        "id": letter.id,
        "sink": letter.sink,
        "cloudEventId": letter.event_id,
        "type": letter.type,
        "subject": letter.subject,
        "attempts": letter.attempts,
        "firstAttempt": moment(letter.first),
        "lastAttempt": moment(letter.last),
        "reason": letter.reason,
        "href": f"/api/v1/dead-letters/{letter.id}",
    }
