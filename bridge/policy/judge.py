"""Votes, rules and time: whether a scheduled event may start early, and who tells Azure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from bridge.core.model import STARTED, ScheduledEvent
from bridge.policy.allow import Allow, Coverage, denied, speaks_for_all
from bridge.policy.auto import Auto, chosen
from bridge.policy.require import Require, Tally, Times, seat, tally, uncounted, with_remedy
from bridge.policy.votes import (
    AUTO,
    SINK,
    Announced,
    Given,
    Refusal,
    Vote,
    Voter,
    is_reserved,
    lapses,
)

AFTER_DRY_RUN = "it was given in a dry run, and the dry run has ended"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the operator requires; `vm_name` is this VM's name, or None while unknown."""

    require: Require = "each-resource"
    leader: Literal["first-resource", "none"] = "first-resource"
    takeover_after: timedelta = timedelta(seconds=5)
    hold_timeout: timedelta = timedelta(minutes=10)
    dry_run: bool = False
    allow: tuple[Allow, ...] = ()
    auto: tuple[Auto, ...] = ()
    vm_name: str | None = None


@dataclass(frozen=True, slots=True)
class Judgment:
    """The result of counting the votes on one scheduled event.

    `since` is when there were enough of them; `until` is when the next hold expires. `last` is the
    latest approval that counts, and `local` says whether one of them was given to this bridge only.
    """

    satisfied: bool
    have: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    last: Vote | None = None
    local: bool = False


def objection(given: Given, vote: Vote, event: ScheduledEvent, rules: Rules) -> Refusal | None:
    """Why the approval cannot count as *vote* on *event*; None when it can.

    Permissions are checked before anything else, so that an unauthorized sender learns nothing.
    """
    if given.identity is not None and given.approval.approver not in (None, given.identity):
        why = f"the sender is {given.identity}, but votes under another name"
        return Refusal("unauthorized", why)
    if is_reserved(vote.approver) and vote.via not in {AUTO, SINK}:
        return Refusal("unauthorized", f"{vote.approver} is a name of the bridge's own votes")
    if (refusal := denied(rules.allow, vote, event)) is not None:
        return with_remedy(refusal, vote, rules.allow, rules.require)
    return _too_late(vote, event, rules) or _for_nothing(vote, event, rules)


def _too_late(vote: Vote, event: ScheduledEvent, rules: Rules) -> Refusal | None:
    if event.status == STARTED:
        return Refusal("expired", "the scheduled event has already started")
    return Refusal("superseded", AFTER_DRY_RUN) if ends_with_dry_run(vote, rules) else None


def _for_nothing(vote: Vote, event: ScheduledEvent, rules: Rules) -> Refusal | None:
    if vote.resource and not event.names(vote.resource):
        return Refusal("not-approvable", "the event does not name that resource")
    if _for_none(vote, event, rules):
        return Refusal("resource-required", "the event has several VMs; name one in resource")
    return uncounted(vote, rules.require)


def _for_none(vote: Vote, event: ScheduledEvent, rules: Rules) -> bool:
    """Whether it approves without naming a VM; a hold may always cover the whole event."""
    if rules.require != "each-resource" or vote.decision != "approve" or vote.resource:
        return False
    return len(event.resources) > 1 and not speaks_for_all(rules.allow, vote, event)


def as_vote(given: Given, event: ScheduledEvent, life: int, now: datetime) -> Vote:
    """The approval as a vote on *event* in its current state."""
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
        signed_at=given.signed_at,
        local=given.local,
        log=given.log,
        recorded=given.recorded,
        dry_run=given.dry_run and approval.decision == "approve",
    )


def judge(event: ScheduledEvent, votes: Iterable[Vote], rules: Rules, now: datetime) -> Judgment:
    """Count the valid votes. A hold that has not expired keeps the event waiting."""
    return CountedVotes(event, rules, votes).judge(now)


class CountedVotes:
    """The votes on an event, counted as they come.

    One more vote costs about the same however many there are. `version` grows with each change,
    and `unverified` is how many of the voters did not prove their name.
    """

    def __init__(self, event: ScheduledEvent, rules: Rules, votes: Iterable[Vote] = ()) -> None:
        self.event, self.rules = event, rules
        self.version = self.unverified = 0
        self.votes: dict[Voter, Vote] = {}
        self._count = _VoteCount(event, rules)
        self._holding: dict[str, dict[Voter, Vote]] = {}
        for vote in votes:
            self.put(vote)

    def put(self, vote: Vote) -> None:
        """Add a vote, or replace that of the same voter."""
        before = self.votes.get(vote.voter)
        if before is not None:
            self._holding.get(vote.approver, {}).pop(vote.voter, None)
            self._count.remove(before)
            self.unverified -= not before.verified
        self.unverified += not vote.verified
        self.votes[vote.voter] = vote
        if vote.decision != "approve":
            self._holding.setdefault(vote.approver, {})[vote.voter] = vote
        self._count.add(vote)
        self.version += 1

    def holding(self, approver: str) -> Iterable[Vote]:
        """The holds and releases of one approver."""
        return self._holding.get(approver, {}).values()

    def judge(self, now: datetime) -> Judgment:
        return self._count.judge(now)

    def held(self, now: datetime) -> list[tuple[Vote, datetime]]:
        """The holds in force, each with its end."""
        return [(vote, end) for vote, end in self._count.held() if now < end]


class _VoteCount:
    """Which votes on an event count, and for what. What many votes share is looked up once."""

    def __init__(self, event: ScheduledEvent, rules: Rules) -> None:
        self._event, self._rules = event, rules
        self._lapsed, self._coverage = lapses(event), Coverage(event)
        self._entries: dict[str, list[Allow]] = {}
        for rule in rules.allow:
            self._entries.setdefault(rule.approver, []).append(rule)
        self._approvals, self._lifts = Times(), Times()
        self._seats: dict[str, Times] = {}
        self._first: dict[str, datetime] = {}
        self._tally: Tally | None = None
        self._others: dict[Voter, Vote] = {}
        self._local = 0

    def add(self, vote: Vote) -> None:
        if not self._counts(vote):
            return
        if vote.decision == "release" or vote.lifts:
            self._lifts.add(vote)
        if vote.decision != "approve":
            self._others[vote.voter] = vote
            return
        self._approvals.add(vote)
        self._local += vote.local
        self._fill(vote)

    def remove(self, vote: Vote) -> None:
        self._lifts.remove(vote)
        self._others.pop(vote.voter, None)
        if self._approvals.remove(vote):
            self._local -= vote.local
            self._fill(vote, leaves=True)

    def _fill(self, vote: Vote, *, leaves: bool = False) -> None:
        """An approval fills its seat, or leaves it."""
        name = seat(vote, self._event, self._rules.require, self._covers_all)
        if name is None:
            return
        times = self._seats.setdefault(name, Times())
        if leaves:
            times.remove(vote)
        else:
            times.add(vote)
        before, first = self._first.pop(name, None), times.first
        if first is not None:
            self._first[name] = first.at
        if before != (first and first.at):
            self._tally = None

    def judge(self, now: datetime) -> Judgment:
        found = self._tally = self._tally or tally(self._event, self._first, self._rules.require)
        held = self.held()
        active = [(vote, end) for vote, end in held if now < end]
        free = [end for _, end in held]
        if self._lifts.last is not None:
            free.append(self._lifts.last.at)
        return Judgment(
            satisfied=found.since is not None and not active,
            have=found.have,
            missing=found.missing,
            holds=tuple(_shown(vote) for vote, _ in active),
            since=None if found.since is None else max([found.since, *free]),
            until=min((end for _, end in active), default=None),
            last=self._approvals.last,
            local=self._local > 0,
        )

    def held(self) -> list[tuple[Vote, datetime]]:
        """The holds, in the order of their voters, each with its end, which may be past."""
        holds = [vote for _, vote in sorted(self._others.items()) if _holds(vote, self._others)]
        return [(vote, vote.at + self._rules.hold_timeout) for vote in holds]

    def _counts(self, vote: Vote) -> bool:
        """Whether the current rules allow the vote: they may have changed since it was cast."""
        if self._lapsed(vote) or ends_with_dry_run(vote, self._rules):
            return False
        if vote.via == AUTO:
            return chosen(self._rules.auto, self._event, self._rules.vm_name) == vote.resource
        allow = self._allow(vote)
        if denied(allow, vote, self._event, self._coverage) is None:
            return True
        return vote.decision != "approve" and denied(allow, vote, _then(vote, self._event)) is None

    def _covers_all(self, vote: Vote) -> bool:
        return vote.via == AUTO or speaks_for_all(
            self._allow(vote), vote, self._event, self._coverage
        )

    def _allow(self, vote: Vote) -> Sequence[Allow]:
        """The approver's entries; if it has none, another's, because no entries allow everyone."""
        return self._entries.get(vote.approver) or self._rules.allow[:1]


def ends_with_dry_run(vote: Vote, rules: Rules) -> bool:
    """Whether an approval was cast in a dry run that has ended."""
    return vote.dry_run and not rules.dry_run


def _then(vote: Vote, event: ScheduledEvent) -> ScheduledEvent:
    """The event when the vote was cast: a hold stays if its approver was allowed it then."""
    about = vote.about
    return replace(event, event_type=about.event_type, resources=about.resources)


def _holds(vote: Vote, others: Mapping[Voter, Vote]) -> bool:
    """Whether a hold is in force: until its voter votes again, or its approver releases all."""
    if vote.decision != "hold":
        return False
    other = others.get((vote.approver, ""))
    if other is None or other.decision != "release":
        return True
    return other.verified < vote.verified or other.at < vote.at


def _shown(vote: Vote) -> str:
    return f"{vote.approver}@{vote.resource}" if vote.resource else vote.approver


def turn(
    event: ScheduledEvent, vm_name: str | None, scope: Literal["own", "all"], rules: Rules
) -> int | None:
    """When it is this bridge's turn to act on a satisfied policy: 0 is now, None is never.

    The bridge on the first VM leads, the others take over in order, and a bridge with scope `all`
    is last.
    """
    names = [name.casefold() for name in event.resources]
    mine = vm_name.casefold() if vm_name else None
    if mine in names:
        alone = event.event_type.casefold() == "terminate" or rules.leader == "none"
        return 0 if alone else names.index(mine)
    return len(names) if scope == "all" else None
