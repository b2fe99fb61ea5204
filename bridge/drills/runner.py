"""Runs drills: made-up events that are announced, voted on and ended, and never POSTed.

Nothing here can reach Azure: this module has no access to the metadata service.
"""

import asyncio
import time
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from bridge.common.errors import Unavailable
from bridge.common.fields import write_duration
from bridge.core import messages
from bridge.core.cloudevent import CloudEvent
from bridge.drills.plan import Plan, made_up
from bridge.journal.drills import begin, find, proceed, under_way
from bridge.journal.store import Store
from bridge.journal.votes import votes
from bridge.policy.drill import (
    BRIEFLY,
    Drill,
    DrillVotes,
    advance,
    announced,
    count,
    next_moment,
    stop,
    tracked,
)
from bridge.policy.judge import Judgment, judge
from bridge.runtime.runtime import Runtime

_LOOK_AGAIN = 5.0


class Busy(Exception):
    """Another drill is running; only one can run at a time."""

    def __init__(self, drill: Drill) -> None:
        super().__init__(f"The drill {drill.key}, started by {drill.actor}, is already running.")
        self.drill = drill


class Impossible(Exception):
    """The plan cannot be rehearsed here; the message says why."""


async def start(runtime: Runtime, plan: Plan, *, actor: str, via: str) -> Drill:
    """Make up a scheduled event and announce it.

    Raises `Busy`, `Impossible`, and `Unavailable` while the journal cannot be written.
    """
    journal, now = runtime.journal, datetime.now(UTC)
    drill = _plan(runtime, plan, now, actor=actor, via=via)
    said = [_told(runtime, drill, now)]
    running = await journal.durably(lambda store: begin(store, drill, said, time.time()))
    if running is not None:
        raise Busy(running)
    journal.announce()
    await _audit(runtime, "drill.started", drill, actor=actor, via=via)
    return drill


def _plan(runtime: Runtime, plan: Plan, now: datetime, *, actor: str, via: str) -> Drill:
    mine, margin = runtime.identity.vm_name, runtime.config.approvals.margin
    if plan.seconds <= margin:
        least = write_duration(margin)
        raise Impossible(f"The notice must be longer than approvals.margin, {least}.")
    if not plan.resources and mine is None:
        raise Impossible("This VM's name is not known yet, so name the resources.")
    resources = plan.resources or ((mine,) if mine else ())
    event = made_up(plan, str(uuid.uuid4()), resources, now)
    if mine is not None and runtime.config.source.scope == "own" and not event.names(mine):
        raise Impossible(f"One of the resources must be this VM, {mine} (source.scope is own).")
    sinks = runtime.status.sinks.items()
    return Drill(
        known=tracked(event, mine, now),
        actor=actor,
        via=via,
        begun_at=now,
        approve_by=now + timedelta(seconds=plan.seconds - margin),
        lasts=BRIEFLY if plan.duration is None else plan.duration,
        sinks=tuple((name, one.type, one.required) for name, one in sinks),
    )


async def end(runtime: Runtime, event_key: str, *, actor: str, via: str) -> bool | None:
    """Stop a drill. Return whether it was running, or None if there is no such drill.

    Raises `Unavailable` while the journal cannot be written.
    """
    drill = await runtime.journal.run(lambda store: find(store, event_key))
    while drill is not None and not drill.over:
        now = datetime.now(UTC)
        after = stop(drill, await ballot(runtime, drill, now), now)
        if await _proceed(runtime, drill, after, now):
            await _audit(runtime, "drill.ended", after, actor=actor, via=via)
            return True
        drill = await runtime.journal.run(lambda store: find(store, event_key))
    return None if drill is None else False


async def ballot(runtime: Runtime, drill: Drill, now: datetime) -> DrillVotes:
    """The current votes on the drill."""
    return count(drill, await _judged(runtime, drill, now), runtime.rules)


async def _judged(runtime: Runtime, drill: Drill, now: datetime) -> Judgment:
    known = drill.known
    cast = await runtime.journal.run(lambda store: votes(store, drill.key, known.life))
    return judge(known.event, cast, runtime.rules, now)


async def conduct(runtime: Runtime) -> None:
    """Run every drill to its end, even across restarts; never returns."""
    with runtime.journal.news() as news:
        while True:
            news.clear()
            wait = await look(runtime)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await news.wait()


async def look(runtime: Runtime) -> float | None:
    """Advance the drill if it is time. Return the seconds until the next look; None if idle."""
    journal = runtime.journal
    if journal.trouble:
        return _LOOK_AGAIN
    drill = await journal.run(under_way)
    while drill is not None:
        now = datetime.now(UTC)
        judgment = await _judged(runtime, drill, now)
        after = advance(drill, count(drill, judgment, runtime.rules), now)
        if after is drill:
            moments = (next_moment(drill), judgment.until)
            soonest = min(moment for moment in moments if moment is not None)
            return max(0.01, (soonest - now).total_seconds())
        try:
            done = await _proceed(runtime, drill, after, now)
        except Unavailable:
            return _LOOK_AGAIN
        if done and after.over:
            await _audit(runtime, "drill.ended", after, actor="bridge", via="drill")
        drill = await journal.run(under_way)
    return None


async def _proceed(runtime: Runtime, before: Drill, after: Drill, now: datetime) -> bool:
    said = [_told(runtime, after, now)]

    def write(store: Store) -> bool:
        return proceed(store, before, after, said, time.time())

    done = await runtime.journal.durably(write)
    runtime.journal.announce()
    return done


def _told(runtime: Runtime, drill: Drill, now: datetime) -> CloudEvent:
    """The CloudEvent about the drill. It has no incarnation, because no document contains it."""
    return messages.transition(announced(drill), runtime.identity.observer, now, None)


async def _audit(runtime: Runtime, action: str, drill: Drill, *, actor: str, via: str) -> None:
    event = drill.known.event
    detail = {
        "eventId": drill.key,
        "eventType": event.event_type,
        "resources": list(event.resources),
        "status": drill.status.capitalize(),
    }
    await runtime.audit(action, actor=actor, via=via, detail=detail)
