"""Votes, rules and time: whether a scheduled event may start early, and who tells Azure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from bridge.model import STARTED, ScheduledEvent
from bridge.votes import Announced, Approval, Given, Vote

Require = Literal["any", "each-resource"]

_HARSHNESS = {"freeze": 0, "reboot": 1, "redeploy": 2, "preempt": 3, "terminate": 3}


@dataclass(frozen=True, slots=True)
class Rules:
    """What the operator asks for."""

    require: Require = "each-resource"
    leader: Literal["first-resource", "none"] = "first-resource"
    takeover_after: timedelta = timedelta(seconds=5)
    hold_timeout: timedelta = timedelta(minutes=10)
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an approval does not count: a stable word, and a sentence."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """Where the votes on one scheduled event stand.

    `since` is from when on they are enough; `until` is when the next hold expires.
    """

    satisfied: bool
    have: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    causes: tuple[Vote, ...] = ()


def objection(
    approval: Approval, event: ScheduledEvent, rules: Rules, identity: str | None = None
) -> Refusal | None:
    """Why an approval cannot count for *event*; None when it can.

    *identity* is what the transport proved of the sender: then that is its name.
    """
    if identity is not None and approval.approver not in (None, identity):
        return Refusal("unauthorized", f"the sender is {identity}, and speaks under another name")
    if event.status == STARTED:
        return Refusal("expired", "the scheduled event has started")
    if approval.resource is not None:
        known = event.names(approval.resource)
        return None if known else Refusal("not-approvable", "the event does not name that resource")
    if rules.require == "each-resource" and len(event.resources) > 1:
        return Refusal("resource-required", "the event has several VMs; name one in resource")
    return None


def as_vote(given: Given, event: ScheduledEvent, life: int, now: datetime) -> Vote:
    """What was given, as a vote on *event* as it stands now."""
    approval = given.approval
    return Vote(
        event_key=event.key,
        life=life,
        approver=given.approver,
        resource=approval.resource or "",
        decision=approval.decision,
        approval=approval.id,
        key=approval.key,
        at=now,
        via=given.via,
        verified=given.identity is not None,
        position=given.position,
        reason=approval.reason,
        about=Announced(event.event_type, event.resources, event.not_before),
    )


def lapsed(vote: Vote, event: ScheduledEvent) -> bool:
    """Whether the event turned for the worse since the vote: more VMs, harsher, or earlier."""
    before = vote.about
    named = {name.casefold() for name in before.resources}
    if any(name.casefold() not in named for name in event.resources):
        return True
    if _harsher(before.event_type.casefold(), event.event_type.casefold()):
        return True
    if event.not_before is None or before.not_before is None:
        return False
    return event.not_before < before.not_before


def _harsher(before: str, now: str) -> bool:
    """What is not known to be as mild is taken for harsher."""
    if before == now:
        return False
    if before in _HARSHNESS and now in _HARSHNESS:
        return _HARSHNESS[now] > _HARSHNESS[before]
    return True


def unchanged(vote: Vote, standing: Vote, event: ScheduledEvent, rules: Rules) -> bool:
    """Whether *vote* says again what still stands."""
    if vote.decision != standing.decision or lapsed(standing, event):
        return False
    return vote.decision != "hold" or vote.at < standing.at + rules.hold_timeout


def older(vote: Vote, standing: Vote) -> bool:
    """Whether *vote* was given before *standing*, as far as their positions tell.

    Positions in one log can be compared; else what arrives later is later.
    """
    if vote.position is None or standing.position is None:
        return False
    log, _, offset = vote.position.rpartition("/")
    other_log, _, other = standing.position.rpartition("/")
    if not log or log != other_log or not (_is_number(offset) and _is_number(other)):
        return False
    return int(offset) < int(other)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20


def judge(event: ScheduledEvent, votes: Iterable[Vote], rules: Rules, now: datetime) -> Judgement:
    """Count the votes that still stand. A hold that has not expired keeps everything waiting."""
    standing = [vote for vote in votes if not lapsed(vote, event)]
    approvals = sorted((v for v in standing if v.decision == "approve"), key=lambda v: v.at)
    ends = {vote: vote.at + rules.hold_timeout for vote in standing if _holds(vote, standing)}
    active = [vote for vote, end in ends.items() if now < end]
    have, missing, enough = _count(event, approvals, rules.require)
    free = [*(v.at for v in standing if v.decision == "release"), *ends.values()]
    return Judgement(
        satisfied=enough is not None and not active,
        have=have,
        missing=missing,
        holds=tuple(_shown(vote) for vote in active),
        since=None if enough is None else max([enough, *free]),
        until=min((ends[vote] for vote in active), default=None),
        causes=tuple(approvals),
    )


def _holds(vote: Vote, standing: Sequence[Vote]) -> bool:
    """A hold stands until its voice says otherwise, or its approver releases everything."""
    return vote.decision == "hold" and not any(
        other.decision == "release"
        and not other.resource
        and other.approver == vote.approver
        and other.at >= vote.at
        for other in standing
    )


def _shown(vote: Vote) -> str:
    return f"{vote.approver}@{vote.resource}" if vote.resource else vote.approver


def _count(
    event: ScheduledEvent, approvals: Sequence[Vote], require: Require
) -> tuple[tuple[str, ...], tuple[str, ...], datetime | None]:
    """Who or what is approved for, what is missing, and since when nothing is; oldest first."""
    if require == "any" or not event.resources:
        have = tuple(dict.fromkeys(vote.approver for vote in approvals))
        return (have, (), approvals[0].at) if have else ((), ("any",), None)
    first: dict[str, datetime] = {}
    for vote in approvals:
        for name in [vote.resource] if vote.resource else event.resources:
            first.setdefault(name.casefold(), vote.at)
    have = tuple(name for name in event.resources if name.casefold() in first)
    missing = tuple(name for name in event.resources if name.casefold() not in first)
    return have, missing, None if missing else max(first[name.casefold()] for name in have)


def turn(
    event: ScheduledEvent, vm_name: str | None, scope: Literal["own", "all"], rules: Rules
) -> int | None:
    """In which turn this bridge acts on a satisfied policy: 0 at once, None never.

    The bridge on the first VM leads; the n-th stands in later, and one that watches all comes last.
    """
    names = [name.casefold() for name in event.resources]
    mine = vm_name.casefold() if vm_name else None
    if mine in names:
        alone = event.event_type.casefold() == "terminate" or rules.leader == "none"
        return 0 if alone else names.index(mine)
    return len(names) if scope == "all" else None
