"""The poll loop: fetch, decide, commit; the source of every transition."""

import asyncio
import logging
import random
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from bridge.common.computation import computed
from bridge.common.supervise import backoff, heard
from bridge.config import Config
from bridge.core.cloudevent import CloudEvent
from bridge.core.diff import transitions, unannounced
from bridge.core.model import Document
from bridge.core.state import Facts, State, Step
from bridge.journal import Journal, SetAside
from bridge.journal.grants import granted
from bridge.metadata.answers import Answer, SourceProblem
from bridge.metadata.client import Metadata
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import SourceStatus
from bridge.source.endpoint import Endpoint, locate
from bridge.source.reader import Outage, Reader, azure_now, clock_skew, is_skewed, result_of

if TYPE_CHECKING:
    from bridge.source.announcements import Announcer

log = logging.getLogger(__name__)

LONGEST_BACKOFF = 5.0
MANY = 100
"""From this many events on, documents are compared in a thread."""
JITTER = 60.0
"""Jitter, so that a fleet that loses its source does not report it all at the same time."""
_NOTE_GOOD = timedelta(minutes=10)
_WATCHING = 60.0
_LOST_TRACK = 5


@dataclass(slots=True)
class Poller:
    """One VM's view of its scheduled events. `run` runs until canceled.

    It keeps its first configuration: a reload that changes the source creates another poller.
    """

    runtime: Runtime
    endpoint: Endpoint
    config: Config = field(init=False)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    _state: State = field(default_factory=State)
    _reader: Reader = field(default_factory=Reader)
    _outage: Outage = field(default_factory=Outage)
    _failures: int = 0
    _seen: float | None = None
    _snapshot_due: float = 0.0
    _generation: int = -1
    _asked_at: float = 0.0

    def __post_init__(self) -> None:
        self.config = self.runtime.config

    @property
    def journal(self) -> Journal:
        return self.runtime.journal

    @property
    def status(self) -> SourceStatus:
        return self.runtime.status.source

    @property
    def _announcer(self) -> "Announcer":
        # Imported here: the first poll does not need it.
        from bridge.source.announcements import Announcer  # noqa: PLC0415  nothing is announced before the first answer

        return Announcer(self.runtime)

    async def run(self) -> None:
        """Find the endpoint and poll it; look for it again when it becomes unreachable."""
        while True:
            url = await self._locate()
            if url is None:
                await asyncio.sleep(self._pause())
                continue
            async with self._connected(url) as metadata:
                while not self._lost_track():
                    self.endpoint.asked_again.clear()
                    async with self.endpoint.turn:
                        problem = await self.poll(metadata)
                    pause = self._pause(problem)
                    again = self.endpoint.asked_again
                    await (asyncio.sleep(pause) if problem else heard(again, pause))

    async def once(self) -> bool:
        """Poll once; True when there was a usable answer."""
        url = await self._locate()
        if url is None:
            return False
        async with self._connected(url) as metadata:
            return await self.poll(metadata) is None

    def _connected(self, url: str) -> AbstractAsyncContextManager[Metadata]:
        return self.endpoint.connected(url, self.config.source.api_version)

    async def poll(self, metadata: Metadata) -> SourceProblem | None:
        """Fetch once and process the answer; return the problem, if there was one."""
        await self.runtime.identity.learn(metadata)
        self.asked.set()
        began, self._asked_at = self.runtime.clock.monotonic(), self.runtime.tracing.clock()
        answer = await metadata.fetch()
        self.status.polls += 1
        self.status.http_status = answer.status
        self.status.last_poll = self.runtime.clock.monotonic()
        self.status.requests.observe(self.status.last_poll - began)
        self._log_result(answer, self.status.last_poll - began)
        local = self.runtime.clock.now()
        now = azure_now(answer.date, local)
        self._compare_clocks(clock_skew(answer.date, local))
        try:
            await self._refresh()
            if isinstance(answer, SourceProblem):
                await self._problem(answer, local)
                return answer
            await self._answer(answer, now)
        except SetAside as error:
            log.warning("poll.repeated", extra={"reason": str(error)})
        return None

    def _log_result(self, answer: Answer | SourceProblem, seconds: float) -> None:
        if not log.isEnabledFor(logging.DEBUG):
            return
        document = answer.document if isinstance(answer, Answer) else None
        fields = {
            "result": result_of(answer),
            "status": answer.status,
            "incarnation": document.incarnation if document else None,
            "events": len(document.events) if document else None,
            "seconds": round(seconds, 3),
        }
        log.debug("poll.finished", extra=fields)

    def _compare_clocks(self, skew: float | None) -> None:
        """Note how far our clock is off; an answer without a Date leaves what is known."""
        if skew is None:
            return
        status = self.status
        before, status.clock_skew = status.skewed, skew
        status.skewed = is_skewed(skew, before=before)
        if status.skewed and not before:
            log.warning("clock.skewed", extra={"seconds": skew})
        elif before and not status.skewed:
            log.info("clock.corrected", extra={"seconds": skew})

    async def _refresh(self) -> None:
        """Read the state again after a start, and whenever the journal was replaced."""
        if self._generation == self.journal.generation:
            return
        generation = self.journal.generation
        known, self._state = self._state, await self.journal.load()
        if self._generation >= 0:
            self._snapshot_due = 0.0
            if self._state.last_good is None:
                # The journal was replaced: publish what is pending again, in the lives we know.
                self._state = unannounced(known)
        since = await self.journal.run(lambda store: store.recall("degraded_since"))
        patience = self.config.source.degraded_after + random.uniform(0, JITTER)
        told = datetime.fromisoformat(since) if since else None
        self._outage = replace(
            self._outage,
            patience=patience,
            since=told or self._outage.since,
            told=told is not None,
        )
        self.status.degraded = told is not None
        self._generation = generation

    async def _locate(self) -> str | None:
        budget = self.endpoint.budget
        found = await locate(self.config.source, self.journal, self.status, budget)
        self.status.last_poll = self.runtime.clock.monotonic()
        if isinstance(found, SourceProblem):
            self.status.http_status = found.status
            await self._refresh()
            await self._problem(found, self.runtime.clock.now())
            return None
        self._failures = 0
        return found

    def _lost_track(self) -> bool:
        """Whether to look for the endpoint again: only if it was discovered."""
        gone = self._failures >= _LOST_TRACK and self.status.problem == "unreachable"
        return gone and self.config.source.endpoint == "auto"

    def _pause(self, problem: SourceProblem | None = None) -> float:
        interval = self.config.source.poll_interval
        if problem is not None and problem.retry_after is not None:
            return problem.retry_after
        if self._failures:
            most = max(interval, LONGEST_BACKOFF)
            return max(0.2, backoff(self._failures, first=interval, most=most))
        return interval * random.uniform(0.95, 1.05)

    async def _problem(self, problem: SourceProblem, now: datetime) -> None:
        """Record a problem. It is not an empty document: only the state of the source changes."""
        self._failures += 1
        self._reader.failed()
        status = self.status
        status.problems[problem.reason] = status.problems.get(problem.reason, 0) + 1
        if status.problem != problem.reason:
            level = logging.ERROR if problem.configuration else logging.WARNING
            fields = {"reason": problem.reason, "detail": problem.detail}
            log.log(level, "poll.failed", extra=fields)
        status.problem, status.detail = problem.reason, problem.detail
        if not self._outage.problem(now, self.runtime.clock.monotonic()):
            return
        status.degraded = True
        began = self._outage.since or now
        log.error("source.degraded", extra={"reason": problem.reason, "since": began.isoformat()})
        told = self._announcer.degraded(problem, self._state, now, began)
        await self._record(self._state, [told], degraded_since=began.isoformat())

    async def _answer(self, answer: Answer, now: datetime) -> None:
        moment = self.runtime.clock.monotonic()
        document = self._reader.read(answer, moment, tracking=bool(self._state.tracked))
        if document is None:
            return
        self._failures = 0
        step, events, changed = await self._compared(document, await self._facts(now))
        recovered = self._outage.good()
        if recovered:
            events.append(self._announcer.recovered(self._state, now))
        if recovered or moment >= self._snapshot_due:
            self._snapshot_due = moment + self.config.source.snapshot_interval
            events.append(await self._announcer.snapshot(step.state, now))
        await self._keep(step, events, now, changed=changed, recovered=recovered)

    async def _compared(
        self, document: Document, facts: Facts
    ) -> tuple[Step, list[CloudEvent], bool]:
        """What happened, the CloudEvents about it, and whether there is anything to commit."""
        before, announcer = self._state, self._announcer

        def compare() -> tuple[Step, list[CloudEvent], bool]:
            step = transitions(before, document, facts)
            changed = replace(step.state, last_good=before.last_good) != before
            return step, announcer.transitions(step, facts.now), changed

        return await computed(compare, long=len(document.events) + len(before.tracked) >= MANY)

    async def _facts(self, now: datetime) -> Facts:
        seen, self._seen = self._seen, self.runtime.clock.monotonic()
        return Facts(
            now=now,
            vm_name=self.runtime.identity.vm_name,
            scope=self.config.source.scope,
            boot_id=self.runtime.boot_id,
            watching=seen is not None and self._seen - seen < _WATCHING,
            approved=await self._approved(),
        )

    async def _approved(self) -> frozenset[str]:
        """The pending events that we told Azure to start, in their current lives."""
        tracked = self._state.tracked
        if not tracked:
            return frozenset()
        told = await self.journal.run(granted)
        return frozenset(key for key, life in told if key in tracked and tracked[key].life == life)

    async def _keep(
        self, step: Step, events: list[CloudEvent], now: datetime, *, changed: bool, recovered: bool
    ) -> None:
        """Commit if there is news; without news, record the time of a good answer now and then."""
        known = self._state.last_good
        stale = known is None or now - known > _NOTE_GOOD
        if events or changed or stale:
            meta = {"degraded_since": None} if recovered else {}
            await self._record(step.state, events, **meta)
        if step.transitions and self.status.last_poll is not None:
            self.status.recording.observe(self.runtime.clock.monotonic() - self.status.last_poll)
        self.endpoint.was_read(self._state.incarnation)
        await self._announcer.answered(step, now)

    async def _record(self, state: State, events: list[CloudEvent], **meta: str | None) -> None:
        from bridge.telemetry.cloudevents import traced_poll  # noqa: PLC0415  after the first answer

        now = self.runtime.clock.timestamp()
        with traced_poll(self.runtime.tracing, self._asked_at, events) as traced:
            try:
                await self.journal.commit(state, traced, now, generation=self._generation, **meta)
            except SetAside:
                # Events that end in this document will not be seen again, so record them there too.
                await self.journal.append(traced, now)
                raise
        self._state = state
