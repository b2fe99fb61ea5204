"""The approval sources of one bridge: connects, reads, acknowledges and reconnects each."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bridge.approvals.intake import Intake
from bridge.common.errors import Unavailable
from bridge.common.supervise import attempt, heard, supervise
from bridge.core.state import moment
from bridge.delivery.rules import longest_wait
from bridge.journal import views
from bridge.journal.cursors import checkpoints
from bridge.plugins import ApprovalSettings, Listening
from bridge.plugins.sources import find_approvals
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import ListenerStatus

log = logging.getLogger(__name__)

LONGEST_BACKOFF = 30.0
NOTE = 30.0
"""How often to note that a source is connected, in seconds."""
LONGEST_ASKED = 300.0
"""Errors of a source that an operator must fix."""
_LOOK = 5.0
"""How long reading the journal may take, in seconds."""


@dataclass(slots=True)
class Listener:
    """Reads one source. A session ends with an exception, and the supervisor starts another."""

    name: str
    settings: ApprovalSettings
    runtime: Runtime
    intake: Intake
    status: ListenerStatus
    _generation: int = -1

    async def session(self) -> None:
        """Connect and read messages; each is acknowledged once it is in the journal.

        Wait for Azure's first answer: new votes must not be judged by old state, and an open
        connection that nobody reads could end unnoticed.
        """
        await self.runtime.status.source.answered.wait()
        journal, plugin = self.runtime.journal, find_approvals(self.settings.type)
        if journal.trouble:
            raise Unavailable(journal.trouble)
        self._generation = journal.generation
        listening = Listening(
            self.name,
            await journal.run(lambda store: checkpoints(store, self.name)),
            connected=await self._connected(),
            lookback=await self._lookback(),
            heard=self._heard,
        )
        place, must_sign = self.runtime.identity.place, self.settings.trust == "signed"
        async with plugin.open(self.settings, place, listening) as deliveries, self._noting():
            self._heard(None)
            async for delivery in deliveries:
                where = {"source": self.name, "position": delivery.position}
                log.debug("approvals.received", extra=where)
                self._check_journal()
                await self.intake.take(delivery, self.name, must_sign=must_sign)
                if delivery.ack is not None:
                    await delivery.ack()
                self.status.received += 1

    async def _connected(self) -> datetime | None:
        """When this source was last known to be connected; the release before noted its start."""
        mark, started = await self.runtime.journal.run(
            lambda store: (
                store.recall(f"heard:{self.name}"),
                store.recall(f"listened:{self.name}"),
            )
        )
        if mark is None and started is not None:
            return datetime.fromtimestamp(float(started), UTC)
        return moment(mark)

    @asynccontextmanager
    async def _noting(self) -> AsyncGenerator[None]:
        """Note in the journal when the source was last heard: now and then, and at the end."""
        noting = asyncio.create_task(self._note_often())
        try:
            yield
        finally:
            noting.cancel()
            await asyncio.gather(noting, return_exceptions=True)
            with suppress(Unavailable):
                await self._note()

    async def _note_often(self) -> None:
        while True:
            await asyncio.sleep(NOTE)
            with suppress(Unavailable):
                await self._note()

    async def _note(self) -> None:
        clock, heard = self.runtime.clock, self.status.heard
        if heard is None or self.runtime.journal.trouble:
            return
        at = clock.now() - timedelta(seconds=clock.monotonic() - heard)
        mark = {f"heard:{self.name}": at.isoformat()}
        await self.runtime.journal.durably(lambda store: store.remember(**mark))

    async def _lookback(self) -> float:
        """Read back at least to when this source was last connected, so that nothing is skipped.

        A message that is read twice is recognized by its key, and changes nothing.
        """
        journal, mark, now = self.runtime.journal, f"listened:{self.name}", time.time()
        before = await journal.run(lambda store: store.recall(mark))
        await journal.durably(lambda store: store.remember(**{mark: str(now)}))
        away = now - float(before) if before else 0.0
        return max(self.runtime.config.approvals.lookback, away)

    def _check_journal(self) -> None:
        """A replaced journal has lost the votes and our position: read what the log still has."""
        if self.runtime.journal.generation != self._generation:
            raise Unavailable("the journal was replaced, so the source is read again")

    def _heard(self, lag: int | None) -> None:
        self._check_journal()
        status = self.status
        status.heard, status.lag = self.runtime.clock.monotonic(), lag
        if status.state != "connected":
            log.info("approvals.connected", extra={"source": self.name})
        status.state, status.error = "connected", None

    async def rest(self, seconds: float) -> None:
        """Wait before the next session, but no longer than the nearest event leaves time for."""
        clock, journal = self.runtime.clock, self.runtime.journal
        began, at = clock.monotonic(), clock.now()
        with journal.news() as news:
            while True:
                news.clear()
                notice = await attempt(self._notice(at), _LOOK)
                known = None if isinstance(notice, Unavailable) else notice
                left = began + min(seconds, longest_wait(known)) - clock.monotonic()
                if left <= 0 or not await heard(news, left):
                    return

    async def _notice(self, at: datetime) -> float | None:
        """The shortest notice, as it was at that time, of what has not started yet."""
        pending = await self.runtime.journal.run(views.pending)
        due = [known.event.not_before for known in pending.values()]
        ahead = [
            moment for moment in due if moment is not None and moment > self.runtime.clock.now()
        ]
        return (min(ahead) - at).total_seconds() if ahead else None

    def failed(self, problem: BaseException | None, _: float) -> None:
        status = self.status
        said = "it ended" if problem is None else str(problem) or repr(problem)
        if status.state != "unavailable":
            log.warning("approvals.unavailable", extra={"source": self.name, "error": said})
        status.state, status.error = "unavailable", said


@dataclass(slots=True)
class Listeners:
    """All sources; a reload replaces them like the sinks."""

    runtime: Runtime
    intake: Intake
    _tasks: dict[str, tuple[ApprovalSettings, asyncio.Task[None]]] = field(default_factory=dict)

    async def configure(
        self, sources: Mapping[str, ApprovalSettings], group: asyncio.TaskGroup
    ) -> None:
        for name, (settings, task) in list(self._tasks.items()):
            if sources.get(name) != settings:
                await self._remove(name, task)
        for name, settings in sources.items():
            if name not in self._tasks:
                self._tasks[name] = (settings, self._start(name, settings, group))

    def _start(
        self, name: str, settings: ApprovalSettings, group: asyncio.TaskGroup
    ) -> asyncio.Task[None]:
        status = self.runtime.status.listeners[name] = ListenerStatus(settings.type)
        listener = Listener(name, settings, self.runtime, self.intake, status)
        work = supervise(
            f"approvals.{name}",
            listener.session,
            most=LONGEST_BACKOFF,
            asked=LONGEST_ASKED,
            on_failure=listener.failed,
            sleep=listener.rest,
        )
        return group.create_task(work, name=f"approvals.{name}")

    async def _remove(self, name: str, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        del self._tasks[name], self.runtime.status.listeners[name]

    async def stop(self) -> None:
        for name, (_, task) in list(self._tasks.items()):
            await self._remove(name, task)
