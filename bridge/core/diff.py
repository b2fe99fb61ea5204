"""The state machine: how each scheduled event changed between our state and a new document."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from bridge.core.cloudevent import TransitionKind
from bridge.core.ids import digest, number, timestamp
from bridge.core.model import SCHEDULED, STARTED, Document, ScheduledEvent
from bridge.core.state import Ended, Ends, Facts, PastState, State, Step, Tracked, Transition

SETTLING = timedelta(minutes=5)
"""How long a missing event proves nothing, once the service may be enabling itself again."""
SILENCE = timedelta(hours=24)
"""Azure disables the service after a gap this long."""
REMEMBERED = timedelta(days=30)
"""How long the end of an event is remembered, so that its return is a new life."""

MOST_STATES = 20
"""How many states of one life are remembered."""

_ENDED = frozenset({"completed", "canceled", "cancelled"})


def transitions(before: State, after: Document, facts: Facts) -> Step:
    """Compare our state with a document; pure and deterministic."""
    before = _forget(_settle(before, after, facts), facts.now)
    seen = {event.key: event for event in after.events if event.status.casefold() not in _ENDED}
    tracked: dict[str, Tracked] = {}
    found: list[Transition] = []
    for key, event in seen.items():
        tracked[key], happened = _present(before, event, facts)
        found.extend(happened)
    gone: dict[str, Ended] = {}
    for key, known in before.tracked.items():
        if key in seen:
            continue
        kept, happened = _absent(known, before.settle_until, facts)
        found.extend(happened)
        if kept is not None:
            tracked[key] = kept
        elif known.announced:
            gone[key] = Ended(known.life, facts.now)
    state = replace(
        before,
        tracked=tracked,
        ended=Ends.of(before.ended).adding(gone) if gone else before.ended,
        incarnation=after.incarnation,
        last_good=facts.now,
        boot_id=facts.boot_id or before.boot_id,
    )
    return Step(state, tuple(found), tuple(_regressed(before, seen)))


def unannounced(state: State) -> State:
    """The same state, as if no pending event had been announced in its current life."""
    tracked = {key: replace(known, announced=False) for key, known in state.tracked.items()}
    return replace(state, tracked=tracked)


def in_scope(known: Tracked, facts: Facts) -> bool:
    """Whether to publish it; while the VM's name is unknown, everything is in scope."""
    return facts.scope == "all" or known.affected is not False


def _settle(state: State, after: Document, facts: Facts) -> State:
    """After a boot or a gap, set how long a missing event does not count as ended."""
    booted = None not in (state.boot_id, facts.boot_id) and state.boot_id != facts.boot_id
    silent = state.last_good is not None and facts.now - state.last_good > SILENCE
    if booted:
        tracked = {key: replace(known, booted=True) for key, known in state.tracked.items()}
        state = replace(state, tracked=tracked)
    if booted or silent or _went_down(state.incarnation, after.incarnation):
        return replace(state, settle_until=facts.now + SETTLING)
    if state.settle_until is not None and facts.now >= state.settle_until:
        return replace(state, settle_until=None)
    return state


def _went_down(before: int | str | None, after: int | str | None) -> bool:
    try:
        return int(after or 0) < int(before or 0)
    except ValueError:
        return False


def _forget(state: State, now: datetime) -> State:
    """Forget old ends when the first of them is old: they are in the order of their time.

    After the clock was set back, some are forgotten later; nothing relies on that.
    """
    first = next(iter(state.ended.values()), None)
    if first is None or now - first.at < REMEMBERED:
        return state
    recent = {key: end for key, end in state.ended.items() if now - end.at < REMEMBERED}
    return replace(state, ended=recent)


def _regressed(before: State, seen: Mapping[str, ScheduledEvent]) -> Iterator[str]:
    for key, known in before.tracked.items():
        if key in seen and known.event.status == STARTED and _status(seen[key]) == SCHEDULED:
            yield key


def _status(event: ScheduledEvent) -> str:
    """Only `Started` means started; an unknown status does not."""
    return STARTED if event.status.casefold() == "started" else SCHEDULED


def _present(
    before: State, event: ScheduledEvent, facts: Facts
) -> tuple[Tracked, list[Transition]]:
    affected = event.names(facts.vm_name) if facts.vm_name else None
    known = before.tracked.get(event.key)
    if known is None:
        last = before.ended.get(event.key)
        life = last.life + 1 if last and facts.now - last.at < REMEMBERED else 1
        return _first(_new(event, life, affected, facts), facts)
    known, merged = with_past(known, facts.now), _merge(known.event, event)
    as_before = known.announced and known.missing_since is None and not known.booted
    if as_before and affected == known.affected and merged == known.event:
        return known, []
    now = replace(known, event=merged, affected=affected, missing_since=None, booted=False)
    now = _remembering(now, facts.now)
    if not known.announced:
        return _first(now, facts)
    return _again(known, now, facts)


def _new(event: ScheduledEvent, life: int, affected: bool | None, facts: Facts) -> Tracked:  # noqa: FBT001  as in Tracked
    status = _status(event)
    event = event if event.status == status else replace(event, status=status)
    past = (_past_state(event, facts.now),)
    return Tracked(event, life, affected=affected, past=past, watched=facts.watching)


def _past_state(event: ScheduledEvent, now: datetime) -> PastState:
    return PastState(digest(event), now, event.event_type, event.resources, event.not_before)


def with_past(known: Tracked, now: datetime) -> Tracked:
    """With its present state, if none is remembered: it is new, or an older journal kept none."""
    if known.past:
        return known
    alone = known.since is not None and len(known.states) <= 1
    return _remembering(known, known.since if alone and known.since else now)


def _remembering(known: Tracked, now: datetime) -> Tracked:
    """With its present state as the last of those it had; *now* is when that was first seen."""
    if known.past and known.past[-1].digest == digest(known.event):
        return known
    # After the clock was set back, no earlier state may seem to be in the future.
    past = [replace(one, since=min(one.since, now)) for one in known.past]
    past.append(_past_state(known.event, now))
    watched = known.watched and len(past) <= MOST_STATES
    return replace(known, past=tuple(past[-MOST_STATES:]), watched=watched)


def _merge(old: ScheduledEvent, new: ScheduledEvent) -> ScheduledEvent:
    """Transitions are one-way, and NotBefore (empty once started) keeps its last known value."""
    if new == old:
        return old
    started = STARTED in (old.status, _status(new))
    status = STARTED if started else SCHEDULED
    return replace(new, status=status, not_before=new.not_before or old.not_before)


def _first(known: Tracked, facts: Facts) -> tuple[Tracked, list[Transition]]:
    """Announce an event that is new, or new in scope."""
    if not in_scope(known, facts):
        return known, []
    what: TransitionKind = "started" if known.event.status == STARTED else "scheduled"
    states = {digest(known.event): 1}
    happened = Transition(what, known.event, known.life, known.affected)
    since = known.since or facts.now
    return replace(known, announced=True, states=states, since=since), [happened]


def _again(known: Tracked, now: Tracked, facts: Facts) -> tuple[Tracked, list[Transition]]:
    """Report what changed in an event that was announced before."""
    if known.event.status == STARTED:
        return now, []
    if now.event.status == STARTED:
        happened = Transition("started", now.event, now.life, now.affected, SCHEDULED)
        return now, [happened]
    state = digest(now.event)
    stays = in_scope(now, facts)
    leaves = in_scope(known, facts) and not stays
    if not (leaves or (stays and state != digest(known.event))):
        return now, []
    repeat = now.states.get(state, 0)
    updated = Transition(
        "updated",
        now.event,
        now.life,
        now.affected,
        SCHEDULED,
        changes=_changes(known.event, now.event),
        repeat=repeat,
    )
    return replace(now, states={**now.states, state: repeat + 1}), [updated]


def _changes(old: ScheduledEvent, new: ScheduledEvent) -> dict[str, Any]:
    def view(event: ScheduledEvent) -> dict[str, Any]:
        return {
            "notBefore": timestamp(event.not_before) if event.not_before else None,
            "resources": sorted(set(event.resources)),
            "eventType": event.event_type,
            "description": event.description,
            "durationInSeconds": number(event.duration),
        }

    was, is_now = view(old), view(new)
    return {k: {"from": was[k], "to": is_now[k]} for k in was if was[k] != is_now[k]}


def _absent(
    known: Tracked, settle_until: datetime | None, facts: Facts
) -> tuple[Tracked | None, list[Transition]]:
    """Decide whether a missing event has ended, or is only missing for a while."""
    event = known.event
    since = known.missing_since or facts.now
    if facts.vm_name:  # it may have become known after the event was last seen
        known = replace(known, affected=event.names(facts.vm_name))
    if event.status != STARTED and settle_until is not None and facts.now < settle_until:
        return replace(known, missing_since=since), []
    if not known.announced:
        return None, []
    what: TransitionKind = "completed" if _was_done(known, since, facts) else "canceled"
    inferred = event.status != STARTED or not facts.watching
    return None, [Transition(what, event, known.life, known.affected, event.status, inferred)]


def _was_done(known: Tracked, since: datetime, facts: Facts) -> bool:
    """Whether an event that has ended did run, even if its start was never seen."""
    event = known.event
    return (
        event.status == STARTED
        or event.key in facts.approved
        or (event.not_before is not None and since >= event.not_before)
        or (known.booted and known.affected is True and event.event_type.casefold() != "freeze")
    )
