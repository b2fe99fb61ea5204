"""What the poller publishes: transitions, and the state of the source, as CloudEvents."""

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from bridge.common.computation import computed
from bridge.core import messages
from bridge.core.cloudevent import CloudEvent
from bridge.core.ids import timestamp
from bridge.core.observer import Observer
from bridge.core.state import State, Step, Transition
from bridge.journal.drills import rehearsed
from bridge.journal.grants import granted
from bridge.metadata.answers import SourceProblem
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import SourceStatus

log = logging.getLogger(__name__)

_MANY = 100
"""After this many events the loop gets a turn; from this many on, a snapshot needs a thread.

It is also the most transitions of one document that have a line each in the log.
"""


@dataclass(frozen=True, slots=True)
class Announcer:
    """Builds the CloudEvents, with this VM as the observer."""

    runtime: Runtime

    @property
    def status(self) -> SourceStatus:
        return self.runtime.status.source

    @property
    def observer(self) -> Observer:
        return self.runtime.identity.observer

    def transitions(self, step: Step, now: datetime) -> list[CloudEvent]:
        for key in step.regressed:
            log.warning("event.reverted", extra={"event_id": key, "note": "Started stays Started"})
        observer, incarnation = self.observer, step.state.incarnation
        return [messages.transition(one, observer, now, incarnation) for one in step.transitions]

    def degraded(
        self, problem: SourceProblem, state: State, now: datetime, began: datetime
    ) -> CloudEvent:
        about = self._about(state, began, problem.reason)
        return messages.source("degraded", about, self.observer, now)

    def recovered(self, state: State, now: datetime) -> CloudEvent:
        about = self._about(state, now, self.status.problem)
        return messages.source("recovered", about, self.observer, now)

    async def snapshot(self, state: State, now: datetime) -> CloudEvent:
        """Include the running drill: what is not in a snapshot is over.

        It follows a good answer, so there is no problem to report.
        """
        about = self._about(state, now, None)
        pending = {**state.tracked, **await self.runtime.journal.run(rehearsed)}
        write = partial(messages.source, "snapshot", about, self.observer, now, pending)
        return await computed(write, long=len(pending) >= _MANY)

    async def answered(self, step: Step, now: datetime) -> None:
        """Record in status and log that the source answers, and what it said."""
        status = self.status
        if status.problem is not None:
            log.info("poll.recovered", extra={"after": status.problem})
        status.problem = status.detail = None
        status.degraded, status.last_good = False, now
        status.good_at = self.runtime.clock.monotonic()
        status.answered.set()
        for place, one in enumerate(step.transitions, 1):
            if place % _MANY == 0:
                await asyncio.sleep(0)
            status.transitions[one.what] = status.transitions.get(one.what, 0) + 1
            if one.what == "scheduled" and one.event.not_before:
                status.notice.observe(max(0.0, (one.event.not_before - now).total_seconds()))
            if place <= _MANY:
                _log(one)
        if any(one.what == "started" for one in step.transitions):
            await self._time_starts(step)
        if len(step.transitions) > _MANY:
            log.info("event.more", extra={"count": len(step.transitions) - _MANY})

    async def _time_starts(self, step: Step) -> None:
        """Note how long Azure took to start what it was told to start."""
        told = await self.runtime.journal.run(granted)
        now = self.runtime.clock.timestamp()
        for one in step.transitions:
            at = told.get((one.event.key, one.life)) if one.what == "started" else None
            if at is not None:
                self.runtime.status.grant_to_start.observe(max(0.0, now - at))

    def _about(self, state: State, began: datetime, reason: str | None) -> messages.SourceReport:
        return messages.SourceReport(
            since=began,
            endpoint=self.status.endpoint,
            last_good=self.status.last_good or state.last_good,
            boot_id=self.runtime.boot_id,
            bridge_version=self.runtime.version,
            journal=self.runtime.journal.origin,
            reason=reason,
            status=self.status.http_status,
            clock_skew=self.status.clock_skew,
        )


def _log(one: Transition) -> None:
    due = one.event.not_before
    fields = {
        "event_id": one.event.key,
        "type": one.event.event_type,
        "vms": list(one.event.resources),
        "not_before": timestamp(due) if due else None,
    }
    name = f"event.{one.what}"
    log.info(name, extra=fields)
