"""The outcome of an approval, as a CloudEvent and as the answer to a local caller."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bridge.core.cloudevent import CloudEvent
from bridge.core.envelope import Draft, write
from bridge.core.ids import identify, timestamp
from bridge.core.messages import OutcomeKind, pending
from bridge.core.observer import Observer
from bridge.core.state import Tracked
from bridge.policy.judge import Judgment
from bridge.policy.votes import Approval, Given, LocalOutcome, Refusal, Vote, VoteOutcome

_SEVERITY = {"recorded": 9, "granted": 9, "refused": 13, "failed": 18, "due": 13}
_NO_VETO = "A hold does not stop Azure: the event still starts at notBefore."
_HERE_ONLY = "Other bridges do not know of this hold, and one of them may tell Azure."
_BEING_TOLD = "Azure is being told. This hold cannot stop that request, only further ones."
EARLY = "early"
ALARMING = frozenset({"unauthorized", "replayed"})
"""Reasons of refusals that may be an attack."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Who voted what through which channel.

    A reminder has no approver and no approval; its key is how long before notBefore it is due.
    """

    approval: str | None
    key: str
    decision: str | None
    approver: str | None
    via: str
    verified: bool = False
    position: str | None = None
    resource: str | None = None
    said: str | None = None


def cause_given(given: Given) -> Cause:
    approval = given.approval
    return Cause(
        approval=approval.id,
        key=approval.key,
        decision=approval.decision,
        approver=given.approver,
        via=given.via,
        verified=given.identity is not None,
        position=given.position,
        resource=approval.resource,
        said=approval.reason,
    )


def cause_of(vote: Vote) -> Cause:
    return Cause(
        approval=vote.approval,
        key=vote.key,
        decision=vote.decision,
        approver=vote.approver,
        via=vote.via,
        verified=vote.verified,
        position=vote.position,
        resource=vote.resource or None,
        said=vote.reason,
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an approval; `known` is None if this bridge does not know the event."""

    kind: OutcomeKind
    event_key: str | None
    cause: Cause
    known: Tracked | None = None
    judgment: Judgment | None = None
    policy: str = ""
    reason: str | None = None
    detail: str | None = None
    posted_at: datetime | None = None
    dry_run: bool = False
    would_grant: bool | None = None


def refused_unverified(said: Approval, via: str, why: Refusal) -> Outcome:
    """The refusal of a vote whose sender is not known."""
    cause = Cause(said.id, said.key, said.decision, said.approver, via, resource=said.resource)
    return Outcome("refused", said.event_key, cause, reason=why.reason, detail=why.detail)


def refused(vote: Vote, why: Refusal, known: Tracked, policy: object) -> Outcome:
    """The refusal of a vote on a known event."""
    return Outcome(
        "refused",
        vote.event_key,
        cause_of(vote),
        known,
        policy=str(policy),
        reason=why.reason,
        detail=why.detail,
    )


def outcome(told: Outcome, observer: Observer, now: datetime) -> CloudEvent:
    """The CloudEvent about an outcome; its id is the same on every bridge."""
    kind = f"approval.{told.kind}"
    severity = 17 if told.reason in ALARMING else _SEVERITY[told.kind]
    draft = Draft(
        kind=kind,
        id=identify(*_parts(kind, told)),
        time=now,
        schema="approval-outcome",
        severity=severity,
        event_id=told.event_key,
        data=_data(told, observer, now),
        causation=told.cause.approval,
    )
    return write(draft, observer)


def _parts(kind: str, told: Outcome) -> list[str]:
    if told.kind in {"granted", "failed"} and told.known is not None:
        return [told.known.event.key, kind, str(told.known.life)]
    if told.kind == "due" and told.known is not None:
        return [told.known.event.key, kind, str(told.known.life), told.cause.key]
    return [told.event_key or "-", kind, told.cause.key, told.reason or ""]


def _data(told: Outcome, observer: Observer, now: datetime) -> dict[str, Any]:
    cause = told.cause
    affected = told.known.affected if told.known else None
    return {
        "eventId": told.event_key,
        "approvalId": cause.approval,
        "decision": cause.decision,
        "approver": cause.approver,
        "verified": cause.verified,
        "via": cause.via,
        "position": cause.position,
        "resource": cause.resource,
        "reason": told.reason or cause.said,
        "detail": told.detail,
        "policy": told.policy,
        "votes": _votes(told.judgment),
        **_about(told, observer, now),
        "postedAt": timestamp(told.posted_at) if told.posted_at else None,
        "dryRun": told.dry_run,
        "wouldGrant": told.would_grant,
        "drill": told.known.drill if told.known else False,
        "observer": observer.described(affected=affected),
    }


def _votes(judgment: Judgment | None) -> dict[str, list[str]]:
    if judgment is None:
        return {"have": [], "missing": [], "holds": []}
    return {
        "have": list(judgment.have),
        "missing": list(judgment.missing),
        "holds": list(judgment.holds),
    }


def _about(told: Outcome, observer: Observer, now: datetime) -> Mapping[str, Any]:
    if told.known is None:
        names = ("eventType", "notBefore", "noticeSeconds")
        return {"resources": [], **dict.fromkeys(names)}
    event = pending(told.known.event, observer, now)
    return {name: event[name] for name in ("resources", "eventType", "notBefore", "noticeSeconds")}


def remark(vote: Vote, known: Tracked, told: str | None) -> str | None:
    """What a hold cannot stop, and who does not know of it."""
    if vote.decision != "hold":
        return None
    said = [_BEING_TOLD, _NO_VETO] if told == "asked" else [_NO_VETO]
    if vote.local and len(known.event.resources) > 1 and not known.drill:
        said.append(_HERE_ONLY)
    return " ".join(said)


def told_of(vote: Vote, outcome: VoteOutcome, why: Refusal | None = None) -> LocalOutcome:
    """The answer to a vote."""
    words = (why.reason, why.detail) if why else (None, None)
    return LocalOutcome(vote.event_key, outcome, vote.approval, *words)


def refused_to(given: Given, why: Refusal) -> LocalOutcome:
    """The answer to an approval that is not a vote."""
    approval = given.approval
    return LocalOutcome(approval.event_key, "refused", approval.id, why.reason, why.detail)


def waits_for(given: Given, why: str) -> LocalOutcome:
    """The answer to an approval that waits."""
    approval = given.approval
    return LocalOutcome(approval.event_key, "pending", approval.id, EARLY, why)
