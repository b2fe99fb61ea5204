"""A rehearsal as a value: announced, started and ended like a scheduled event; pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from bridge.core.diff import with_past
from bridge.core.model import SCHEDULED, STARTED, ScheduledEvent
from bridge.core.state import REHEARSED, Tracked, Transition
from bridge.policy.allow import Allow, matches
from bridge.policy.judge import Judgment, Rules

DrillStatus = Literal["scheduled", "started", "completed", "canceled"]
BRIEFLY = 2.0
"""How long a drill runs when no duration is given."""
MISSED = timedelta(seconds=30)
"""This long after notBefore a drill no longer starts: the bridge was down, so the drill is over."""


@dataclass(frozen=True, slots=True)
class DrillVotes:
    """The votes when voting closed, and the rules that applied.

    `since` is when there were enough of them; `expected` is who may approve, by name.
    """

    policy: str
    satisfied: bool
    dry_run: bool
    since: datetime | None = None
    have: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drill:
    """One rehearsal. `lasts` is how many seconds it runs once started.

    `sinks` are the sinks when it began: name, type, and whether each is required.
    """

    known: Tracked
    actor: str
    via: str
    begun_at: datetime
    approve_by: datetime
    lasts: float = BRIEFLY
    sinks: tuple[tuple[str, str, bool], ...] = ()
    status: DrillStatus = "scheduled"
    started_at: datetime | None = None
    ended_at: datetime | None = None
    ballot: DrillVotes | None = None
    inferred: bool = False

    @property
    def key(self) -> str:
        return self.known.event.key

    @property
    def due(self) -> datetime:
        return self.known.event.not_before or self.begun_at

    @property
    def over(self) -> bool:
        return self.ended_at is not None


def tracked(event: ScheduledEvent, vm_name: str | None, now: datetime) -> Tracked:
    affected = event.names(vm_name) if vm_name else None
    known = Tracked(event, REHEARSED, announced=True, affected=affected, since=now, watched=True)
    return with_past(known, now)


def count(drill: Drill, judgment: Judgment, rules: Rules) -> DrillVotes:
    """The current votes, to keep with the drill."""
    return DrillVotes(
        policy=str(rules.require),
        satisfied=judgment.satisfied,
        dry_run=rules.dry_run,
        since=judgment.since if judgment.satisfied else None,
        have=judgment.have,
        missing=judgment.missing,
        holds=judgment.holds,
        expected=expected(rules.allow, drill.known.event),
    )


def expected(allow: Iterable[Allow], event: ScheduledEvent) -> tuple[str, ...]:
    """Who may approve an event like this one, by name."""
    names = (rule.approver for rule in allow if _may_approve(rule, event))
    return tuple(dict.fromkeys(names))


def _may_approve(rule: Allow, event: ScheduledEvent) -> bool:
    globs = rule.resources
    return (
        "approve" in rule.decisions
        and (rule.event_types is None or matches(event.event_type, rule.event_types))
        and (globs is None or any(matches(name, globs) for name in event.resources))
    )


def advance(drill: Drill, ballot: DrillVotes, now: datetime) -> Drill:
    """The drill at *now*: started once the votes are enough or notBefore has passed."""
    if drill.status == "scheduled":
        if now >= drill.due + MISSED:
            return replace(_end(drill, "completed", ballot, now), inferred=True)
        released = ballot.satisfied and not ballot.dry_run
        return _start(drill, ballot, now) if released or now >= drill.due else drill
    if drill.started_at is not None and not drill.over and now >= _end_of(drill):
        return _end(drill, "completed", ballot, now)
    return drill


def stop(drill: Drill, ballot: DrillVotes, now: datetime) -> Drill:
    """End it now: canceled if it has not started, else completed."""
    return _end(drill, "canceled" if drill.status == "scheduled" else "completed", ballot, now)


def next_moment(drill: Drill) -> datetime:
    """When it next changes without a vote."""
    return drill.due if drill.started_at is None else _end_of(drill)


def _end_of(drill: Drill) -> datetime:
    return (drill.started_at or drill.due) + timedelta(seconds=drill.lasts)


def _start(drill: Drill, ballot: DrillVotes, now: datetime) -> Drill:
    known = replace(drill.known, event=replace(drill.known.event, status=STARTED))
    return replace(drill, known=known, status="started", started_at=now, ballot=ballot)


def _end(drill: Drill, status: DrillStatus, ballot: DrillVotes, now: datetime) -> Drill:
    canceled = status == "canceled"
    kept = drill.ballot or ballot
    return replace(drill, status=status, ended_at=now, ballot=kept, inferred=canceled)


def announced(drill: Drill) -> Transition:
    """The transition to publish after a drill has changed."""
    before = {"scheduled": None, "started": SCHEDULED, "canceled": SCHEDULED}
    event = drill.known.event
    return Transition(
        drill.status,
        event,
        drill.known.life,
        drill.known.affected,
        before.get(drill.status, event.status),
        drill.inferred,
    )
