"""The approval sources of one bridge: connects, reads, acknowledges and reconnects each."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
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
from bridge.plugins import ApprovalSettings, Delivery, Listening
from bridge.plugins.sources import find_approvals
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import ListenerStatus

log = logging.getLogger(__name__)

MOST, MOST_BYTES = 256, 1024 * 1024
"""How many messages, and how many bytes, are recorded together."""
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
    _alone: int = 0
    """How many messages to take one at a time, because one of them may be what made us fail."""

    async def session(self) -> None:
        """Connect and read messages; those that have arrived are recorded together.

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
        place = self.runtime.identity.place
        async with plugin.open(self.settings, place, listening) as deliveries, self._noting():
            self._heard(None)
            async with _reading(deliveries) as inbox:
                while arrived := await inbox.arrived(1 if self._alone else MOST):
                    await self._take(arrived)

    async def _take(self, arrived: Sequence[Delivery]) -> None:
        """Record what has arrived, and acknowledge each message once it is in the journal."""
        must_sign = self.settings.trust == "signed"
        while arrived:
            self._check_journal()
            taken = await self.intake.take_some(arrived, self.name, must_sign=must_sign)
            for delivery in arrived[:taken]:
                where = {"source": self.name, "position": delivery.position}
                log.debug("approvals.received", extra=where)
                if delivery.ack is not None:
                    await delivery.ack()
                self.status.received += 1
            self._alone = max(0, self._alone - taken)
            arrived = arrived[taken:]

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
        if problem is not None and not isinstance(problem, Unavailable):
            self._alone = MOST


class _Inbox:
    """The messages of a source that have arrived and are not taken yet, up to a limit."""

    def __init__(self) -> None:
        self._waiting: deque[Delivery] = deque()
        self._bytes, self._over = 0, False
        self._news, self._room = asyncio.Event(), asyncio.Event()

    async def fill(self, deliveries: AsyncIterator[Delivery]) -> None:
        """Read until the source ends or fails, and wait while there is no room."""
        try:
            async for delivery in deliveries:
                self._waiting.append(delivery)
                self._bytes += len(delivery.body)
                self._news.set()
                while len(self._waiting) >= MOST or self._bytes >= MOST_BYTES:
                    self._room.clear()
                    await self._room.wait()
        finally:
            self._over = True
            self._news.set()

    async def arrived(self, most: int) -> list[Delivery]:
        """What has arrived, up to *most*; wait for the first one. Empty: nothing more comes."""
        await self._news.wait()
        found = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        self._bytes -= sum(len(one.body) for one in found)
        self._room.set()
        if not self._waiting and not self._over:
            self._news.clear()
        return found


@asynccontextmanager
async def _reading(deliveries: AsyncIterator[Delivery]) -> AsyncGenerator[_Inbox]:
    """Read ahead. When the source has failed and all that arrived is taken, raise its error."""
    inbox = _Inbox()
    task = asyncio.create_task(inbox.fill(deliveries))
    try:
        yield inbox
        await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


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
