"""A rehearsal as a value: announced, started and ended like a scheduled event; pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from bridge.core.model import SCHEDULED, STARTED, ScheduledEvent
from bridge.core.state import REHEARSED, Tracked, Transition
from bridge.policy.allow import Allow, matches
from bridge.policy.judge import Judgement, Rules

DrillStatus = Literal["scheduled", "started", "completed", "canceled"]
BRIEFLY = 2.0
"""From the start to the end of a drill whose duration nobody has said."""
MISSED = timedelta(seconds=30)
"""So long after notBefore a start is no news: the bridge was not there, and the drill is over."""


@dataclass(frozen=True, slots=True)
class DrillVotes:
    """Where the votes stood when nobody could vote any more, and by which rules.

    `since` is from when on they were enough; `expected` is who may approve by name.
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
    """One rehearsal. `lasts` is for how many seconds it is started.

    `sinks` are those at its beginning: name, type, and whether it is required.
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
    return Tracked(event, life=REHEARSED, announced=True, affected=affected, since=now)


def count(drill: Drill, judgement: Judgement, rules: Rules) -> DrillVotes:
    """The votes as they stand, to be kept with the drill."""
    return DrillVotes(
        policy=str(rules.require),
        satisfied=judgement.satisfied,
        dry_run=rules.dry_run,
        since=judgement.since if judgement.satisfied else None,
        have=judgement.have,
        missing=judgement.missing,
        holds=judgement.holds,
        expected=expected(rules.allow, drill.known.event),
    )


def expected(allow: Iterable[Allow], event: ScheduledEvent) -> tuple[str, ...]:
    """Who is listed to approve an event like this one."""
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
    """The drill as it is at *now*: started when the votes let it, or when its time has come."""
    if drill.status == "scheduled":
        if now >= drill.due + MISSED:
            return replace(_end(drill, "completed", ballot, now), inferred=True)
        released = ballot.satisfied and not ballot.dry_run
        return _start(drill, ballot, now) if released or now >= drill.due else drill
    if drill.started_at is not None and not drill.over and now >= _end_of(drill):
        return _end(drill, "completed", ballot, now)
    return drill


def stop(drill: Drill, ballot: DrillVotes, now: datetime) -> Drill:
    """End it now: canceled, unless it has started; what has started can only be completed."""
    return _end(drill, "canceled" if drill.status == "scheduled" else "completed", ballot, now)


def next_moment(drill: Drill) -> datetime:
    """When it changes by itself."""
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
    """What is to be said of a drill that has just become what it is."""
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
