"""The report of a drill as text, and the lines printed while it runs; pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bridge.cli.text import clock, pairs, printable, table, wrapped, yes_no
from bridge.drills.report import span
from bridge.policy.require import ANY_APPROVER

Report = Mapping[str, Any]
_SINKS = ("SINK", "REQUIRED", "ANNOUNCEMENT", "AFTER", "ATTEMPTS", "ALL CLOUDEVENTS", "ERROR")
_VOTES = ("APPROVER", "FOR", "SAID", "AT", "BEFORE APPROVE BY", "VERIFIED", "VIA")
_REFUSED = ("REFUSED", "FOR", "SAID", "REASON", "VIA", "WHY")


def begun(report: Report, now: datetime) -> str:
    about = f"{report['eventType']} of {', '.join(report['resources'])}"
    when = clock(report["notBefore"], now)
    return f"Drill {report['eventId']}: {about}, not before {when}. Ctrl-C stops it."


def news(before: Report, after: Report) -> Iterator[str]:
    """What has happened between two reports, one line each."""
    known = {_vote_key(one) for one in before["approvals"]["votes"]}
    for one in after["approvals"]["votes"]:
        if _vote_key(one) not in known:
            whom = f" for {one['resource']}" if one["resource"] else ""
            yield f"{one['approver']} votes {one['decision']}{whom}, via {one['via']}."
    refused = after["approvals"]["refused"][len(before["approvals"]["refused"]) :]
    for one in refused:
        yield f"{one['approver']} was refused ({one['reason']}): {one['detail']}."
    states = {one["sink"]: one["outcome"] for one in before["sinks"]}
    for one in after["sinks"]:
        if one["outcome"] != states.get(one["sink"]):
            yield f"Sink {one['sink']}: {one['outcome']}{_after(one)}."
    if after["status"] != before["status"]:
        yield f"The drill is now {after['status'].lower()}."


def _vote_key(vote: Report) -> tuple[Any, ...]:
    return vote["approver"], vote["resource"], vote["decision"], vote["at"]


def _after(sink: Report) -> str:
    return "" if sink["seconds"] is None else f" after {span(sink['seconds'])}"


def told(report: Report, width: int | None = None) -> str:
    """The whole report; the last line is the verdict."""
    approvals = report["approvals"]
    parts = [
        _head(report, width),
        _rows(_SINKS, map(_sink, report["sinks"]), width, notes=True) or "There are no sinks.\n",
        _rows(_VOTES, map(_vote, approvals["votes"]), width) or "Nobody voted.\n",
        _rows(_REFUSED, map(_refusal, approvals["refused"]), width, notes=True),
        _missing(approvals),
        wrapped(printable(_azure(report["azure"])), width)
        + wrapped(printable(report["verdict"]), width),
    ]
    return "\n".join(part for part in parts if part)


def _rows(
    heads: Sequence[str],
    rows: Iterable[tuple[object, ...]],
    width: int | None,
    *,
    notes: bool = False,
) -> str:
    found = list(rows)
    return table(heads, found, width, notes=notes) if found else ""


def _head(report: Report, width: int | None) -> str:
    now = datetime.now(UTC)
    times = (
        ("begun", report["begunAt"]),
        ("approve by", report["approveBy"]),
        ("not before", report["notBefore"]),
        ("started", report["startedAt"]),
        ("ended", report["endedAt"]),
    )
    return pairs(
        (
            ("drill", report["eventId"]),
            ("type", f"{report['eventType']}, {span(report['noticeSeconds'])} notice"),
            ("resources", ", ".join(report["resources"])),
            ("by", f"{report['begunBy']}, via {report['via']}"),
            ("policy", report["approvals"]["policy"]),
            *((name, clock(at, now)) for name, at in times),
            ("now", report["status"]),
        ),
        width,
    )


def _sink(sink: Report) -> tuple[object, ...]:
    return (
        sink["sink"],
        yes_no(sink["required"]),
        sink["outcome"],
        None if sink["seconds"] is None else span(sink["seconds"]),
        sink["attempts"],
        ", ".join(f"{count} {what}" for what, count in sink["cloudEvents"].items()),
        sink["error"],
    )


def _vote(vote: Report) -> tuple[object, ...]:
    early = vote["secondsBeforeApproveBy"]
    return (
        vote["approver"],
        vote["resource"] or "all",
        vote["decision"],
        f"{datetime.fromisoformat(vote['at']):%H:%M:%SZ}",
        span(early) if early >= 0 else f"{span(-early)} late",
        yes_no(vote["verified"]),
        vote["via"],
    )


def _refusal(one: Report) -> tuple[object, ...]:
    whom = one["resource"] or "all"
    return one["approver"], whom, one["decision"], one["reason"], one["via"], one["detail"]


def _missing(approvals: Report) -> str:
    """Who kept it from being approved, one line each; empty if nobody did."""
    named = (
        ("Missing", [one for one in approvals["missing"] if one not in ANY_APPROVER]),
        ("Held by", approvals["holds"]),
        ("Listed, but did not vote", approvals["silent"]),
    )
    return "".join(f"{what}: {printable(_listed(who))}\n" for what, who in named if who)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _azure(azure: Report) -> str:
    if azure["wouldBeTold"]:
        early = azure["secondsBeforeApproveBy"]
        side = f"{span(early)} before" if early >= 0 else f"{span(-early)} after"
        at = datetime.fromisoformat(azure["at"]).astimezone(UTC)
        return (
            f"Azure would have been notified at {at:%H:%M:%SZ}, {side} approveBy. Nothing was sent."
        )
    why = " (approvals.dry_run)" if azure["dryRun"] else ""
    return f"Azure would not have been notified{why}. Nothing was sent."
