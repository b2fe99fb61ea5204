"""The result of a vote, as one line for the voter; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bridge.cli.ids import ambiguous, shortened
from bridge.cli.text import clock, hanging, printable
from bridge.cli.voting.ballot import Ballot
from bridge.core.cloudevent import short_type
from bridge.policy.require import ANY_APPROVER

_APPROVAL = "approval."
_OVER = {
    "started": "the event has started in the meantime",
    "completed": "the event ended in the meantime",
    "canceled": "the event is no longer announced",
}
_BAD = frozenset({"refused", "failed"})


@dataclass(frozen=True, slots=True)
class VoteResult:
    """The result of one vote on one scheduled event, as far as it is known."""

    event_id: str
    outcome: str
    decision: str
    resource: str | None = None
    reason: str | None = None
    detail: str | None = None
    approval_id: str | None = None
    href: str = ""
    missing: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    not_before: str | None = None
    dry_run: bool = False
    would_grant: bool = False
    drill: bool = False
    shared: bool = False
    """Whether other bridges may act on the event too."""

    @property
    def bad(self) -> bool:
        return self.outcome in _BAD

    @property
    def waits(self) -> bool:
        """Whether the votes are enough but Azure has not accepted the StartRequest yet."""
        return self.outcome == "pending" and self.reason is None and self.detail is None

    def as_json(self) -> dict[str, Any]:
        return {
            "eventId": self.event_id,
            "decision": self.decision,
            "resource": self.resource,
            "outcome": self.outcome,
            "reason": self.reason,
            "detail": self.detail,
            "missing": list(self.missing),
            "holds": list(self.holds),
            "dryRun": self.dry_run,
            "drill": self.drill,
            "approvalId": self.approval_id,
        }


def answered(answer: Mapping[str, Any], ballot: Ballot) -> list[VoteResult]:
    """The bridge's response, one result for each scheduled event."""
    return [
        VoteResult(
            one["eventId"],
            one["outcome"],
            ballot.choice.decision,
            ballot.resource,
            one["reason"],
            one["detail"],
            answer["approvalId"],
            one["href"],
        )
        for one in answer["outcomes"]
    ]


def unknown(event_id: str, decision: str, near: str | None) -> VoteResult:
    """The result for an unknown id: it is not sent, because it is most likely mistyped."""
    hint = f"; did you mean {near}?" if near else "; seb events lists the known ones"
    detail = f"this bridge has not seen a scheduled event with this id{hint}"
    return VoteResult(event_id, "refused", decision, reason="unknown-event", detail=detail)


def too_short(event_id: str, decision: str, several: Sequence[Mapping[str, Any]]) -> VoteResult:
    """The result for the beginning of several ids: it is not sent."""
    detail = ambiguous(event_id, several)
    return VoteResult(event_id, "refused", decision, reason="ambiguous-id", detail=detail)


def heard(verdict: VoteResult, cloudevent: Mapping[str, Any]) -> VoteResult:
    """The result after one more CloudEvent; most CloudEvents do not change it."""
    data, kind = cloudevent["data"], short(cloudevent)
    if data.get("eventId") != verdict.event_id:
        return verdict
    if kind in _OVER:
        return replace(verdict, detail=_OVER[kind])
    if kind == f"{_APPROVAL}granted":
        return replace(verdict, outcome="granted")
    ours = data.get("approvalId") == verdict.approval_id
    if kind == f"{_APPROVAL}failed" or (kind == f"{_APPROVAL}refused" and ours):
        outcome = kind.removeprefix(_APPROVAL)
        return replace(verdict, outcome=outcome, reason=data["reason"], detail=data["detail"])
    return verdict


def caught_up(verdict: VoteResult, history: Sequence[Mapping[str, Any]]) -> VoteResult:
    """The result after reading the event's history since it was last announced."""
    for row in reversed(history):
        if short(row["cloudevent"]) == "scheduled":
            break
        later = heard(verdict, row["cloudevent"])
        if later != verdict:
            return later
    return verdict


def explained(verdict: VoteResult, event: Mapping[str, Any]) -> VoteResult:
    """A recorded vote with what else it needs, taken from the event's history."""
    told = [row["cloudevent"]["data"] for row in event["history"] if _records(row["cloudevent"])]
    mine = [data for data in told if data["approvalId"] == verdict.approval_id]
    found = (mine or told)[-1:]
    shared = len(event.get("resources", ())) > 1 and not event["drill"]
    verdict = replace(verdict, not_before=event["notBefore"], drill=event["drill"], shared=shared)
    if not found:
        return verdict
    return replace(
        verdict,
        missing=tuple(found[0]["votes"]["missing"]),
        holds=tuple(found[0]["votes"]["holds"]),
        dry_run=found[0]["dryRun"],
        would_grant=bool(found[0]["wouldGrant"]),
    )


def _records(cloudevent: Mapping[str, Any]) -> bool:
    return short(cloudevent) == f"{_APPROVAL}recorded"


def short(cloudevent: Mapping[str, Any]) -> str:
    """`approval.granted` for `azure.scheduledevents.approval.granted.v1`."""
    return short_type(str(cloudevent["type"]))


def lines(verdicts: Sequence[VoteResult], now: datetime, width: int | None = None) -> str:
    """One line for each; on a terminal of this *width* with short ids, and continued below."""
    ids = [one.event_id for one in verdicts]
    shown = shortened(ids) if width else dict(zip(ids, ids, strict=True))
    return "".join(
        hanging(printable(shown[one.event_id]), printable(_sentence(one, now)), width)
        for one in verdicts
    )


def _sentence(verdict: VoteResult, now: datetime) -> str:
    match verdict.outcome:
        case "granted":
            return f"granted: Azure accepted it; the event may start immediately{_besides(verdict)}"
        case "recorded":
            return "; ".join(_recorded(verdict, now))
        case "pending":
            waits = "the votes are enough; Azure has not answered yet; the bridge keeps trying"
            return f"pending: {verdict.detail or waits}"
    reason = f" ({verdict.reason})" if verdict.reason else ""
    return f"{verdict.outcome}{reason}: {verdict.detail or 'no reason was given'}{_hint(verdict)}"


def _besides(verdict: VoteResult) -> str:
    return f"; {verdict.detail}" if verdict.detail else ""


def _hint(verdict: VoteResult) -> str:
    return " (--resource VM)" if verdict.reason == "resource-required" else ""


def _recorded(verdict: VoteResult, now: datetime) -> Iterable[str]:
    yield "recorded" + (f" for {verdict.resource}" if verdict.resource else "")
    if verdict.decision == "hold":
        yield f"A hold does not stop Azure: the event still starts at {_when(verdict, now)}"
        if verdict.drill:
            yield "a drill: Azure is not notified"
        elif verdict.shared:
            yield "other bridges do not know of this hold, and one of them may tell Azure"
        return
    if verdict.missing == ANY_APPROVER:
        yield "nobody has approved yet"
    elif verdict.missing:
        yield f"still missing: {', '.join(verdict.missing)}"
    if verdict.holds:
        yield f"held by {', '.join(verdict.holds)}"
    if verdict.dry_run:
        told = "would be notified now, but is not" if verdict.would_grant else "is not notified"
        yield f"{'a drill' if verdict.drill else 'dry run'}: Azure {told}"


def _when(verdict: VoteResult, now: datetime) -> str:
    return clock(verdict.not_before, now) if verdict.not_before else "NotBefore"
