"""From the journal to one sink: in order per key, at least once, independent of other sinks."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.common.supervise import attempt, heard
from bridge.delivery.backoff import Pause, Waits
from bridge.delivery.outbox import Outgoing
from bridge.delivery.results import Broken, failures, first_gone, verdict
from bridge.delivery.rules import asked_wait, attempt_timeout, checked, shortest_notice
from bridge.delivery.vote_on_success import CastVote, cast, no_vote
from bridge.journal import Journal, Row
from bridge.plugins import Gone, Place, Result, Send, SinkPlugin, SinkSettings, Unavailable
from bridge.runtime.status import SinkState, SinkStatus

log = logging.getLogger(__name__)

BREATH = 1.0
"""The longest pause before a sink reconnects because a whole batch failed."""
_LEVELS = {"unavailable": logging.WARNING, "stopped": logging.ERROR}


@dataclass(slots=True)
class Loss:
    """What a sink reports about a receiver that went away while there was nothing to send."""

    news: asyncio.Event
    problem: Unavailable | None = None

    def tell(self, problem: Unavailable) -> None:
        """Keep the first reason: it is the real one."""
        self.problem = self.problem or problem
        self.news.set()


@dataclass(slots=True)
class Dispatcher:
    """The worker of one sink. `run` never returns; cancel it when the drain time is over."""

    name: str
    plugin: SinkPlugin[Any]
    settings: SinkSettings
    place: Callable[[], Place]
    journal: Journal
    status: SinkStatus
    vote: CastVote = no_vote
    outgoing: Outgoing = field(init=False)
    _limit: int = field(init=False)
    _waits: Waits = field(default_factory=Waits)
    _pause: Pause = field(default_factory=Pause)
    _entries_failed: int = 0
    _breaks: int = 0
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock)
    _entered: Place = field(default_factory=Place)

    def __post_init__(self) -> None:
        self.outgoing = Outgoing(self.name, self.settings, self.journal, self.status)
        self._limit = self.settings.largest_batch

    async def run(self) -> None:
        """Connect the sink, send until it must reconnect, and repeat."""
        with self.journal.news() as news:
            while True:
                await self._while_stopped(news)
                await self._while_paused(news)
                stack = AsyncExitStack()
                try:
                    await self._session(stack, news)
                finally:
                    await self._leave(stack)

    async def _while_stopped(self, news: asyncio.Event) -> None:
        """Send nothing until the sink is resumed."""
        while self.stopped:
            news.clear()
            await heard(news, await self.outgoing.give_up())

    async def _while_paused(self, news: asyncio.Event) -> None:
        """Do not enter the sink yet; what arrives meanwhile may have less notice than the rest."""
        while self._pause.left(None) > 0:
            news.clear()
            left = self._pause.left(await self.outgoing.most_urgent())
            if left <= 0:
                return
            await heard(news, left)

    async def _session(self, stack: AsyncExitStack, news: asyncio.Event) -> None:
        limit = self._time_for(await self._next())
        loss = Loss(news)
        send = await attempt(self._enter(stack, loss), limit)
        if isinstance(send, Unavailable):
            await self._not_entered(send)
            return
        self._pause.entered()
        self._reached()
        await self._pump(send, news, loss)

    def _reached(self) -> None:
        """The sink is entered. That proves a connection, or that its receiver is there to try."""
        if self._entries_failed or self.status.state == "untried":
            self._change("connected" if self.settings.connects else "untried", None)
        self._entries_failed = 0

    async def _enter(self, stack: AsyncExitStack, loss: Loss) -> Send:
        self._entered = self.place()
        here = replace(self._entered, sink=self.name, lost=loss.tell)
        return await stack.enter_async_context(self.plugin.open(self.settings, here))

    async def _leave(self, stack: AsyncExitStack) -> None:
        """Close the sink; one that does not close in time is abandoned."""
        problem = await attempt(stack.aclose(), self.settings.retry.timeout)
        if isinstance(problem, Unavailable):
            log.warning("sink.close_failed", extra={"sink": self.name, "error": str(problem)})

    async def drained(self) -> None:
        await self.outgoing.drained()

    async def between_batches(self) -> None:
        """Wait until no batch is in flight, so that no result is lost by stopping."""
        async with self._busy:
            return

    @property
    def stopped(self) -> bool:
        return self.status.state == "stopped"

    async def _not_entered(self, problem: Unavailable) -> None:
        """The receiver is not there: count a failed attempt for what waits at the head."""
        self._failed(problem)
        rows = await self._next()
        await self._judge(rows, [problem] * len(rows))
        if self.stopped:
            self._pause.release()
            return
        self._entries_failed += 1
        self._pause.begin(problem, self._entries_failed)

    async def _pump(self, send: Send, news: asyncio.Event, loss: Loss) -> None:
        """Send until a whole batch fails, the sink must reconnect, or the sink stops."""
        while not self.stopped:
            news.clear()
            if loss.problem is not None:
                self._lose(loss.problem)
                return
            if (
                self.place() != self._entered
            ):  # the VM's name is known now, for topics and client ids
                return
            rows = await self._next()
            if not rows:
                await heard(news, await self._idle())
                continue
            async with self._busy:
                results = await self._send(send, rows)
                results = await self._judge(rows, results)
                self._pace(rows, results)
            if isinstance(results, Broken):
                return

    def _lose(self, problem: Unavailable) -> None:
        """Note a lost connection. No attempt has failed: reconnecting is enough."""
        self._failed(problem)
        self._entries_failed = self._entries_failed or 1
        self._break(problem)

    def _break(self, problem: Unavailable) -> None:
        """Reconnect after a short pause, or a longer one if the receiver asks for it."""
        self._breaks += 1
        self._pause.begin(problem, self._breaks, first=BREATH / 16, most=BREATH)

    async def _next(self) -> list[Row]:
        """What to send now: only the most urgent row while the receiver wants us to stay away.

        Small batches begin with it too: many others may fail before its turn.
        """
        blocked = self._waits.keys()
        if self._pause.asked:
            return await self._urgent(blocked)
        rows = await self.outgoing.next(self._limit, blocked)
        if not self._breaks or len(rows) < self._limit:
            return rows
        first = await self._urgent(blocked)
        keys = {row.event.key for row in first}
        return [*first, *(row for row in rows if row.event.key not in keys)][: self._limit]

    async def _urgent(self, blocked: frozenset[str]) -> list[Row]:
        """The row with the least notice, or none while it has to wait."""
        while urgent := await self.outgoing.most_urgent():
            if urgent.key in blocked or self._pause.left(urgent) > 0:
                return []
            if rows := await self.outgoing.next(1, blocked, urgent.key):
                return rows
        return []

    async def _idle(self) -> float | None:
        """Seconds until something may be sent that waits already; None: nothing waits."""
        if not self._pause.asked:
            return self._waits.soonest()
        urgent = await self.outgoing.most_urgent()
        waits = self._waits.left(urgent.key) if urgent else 0.0
        return max(self._pause.left(urgent), waits)

    def _time_for(self, rows: Sequence[Row]) -> float:
        return attempt_timeout(self.settings.retry.timeout, _notice(rows))

    async def _send(self, send: Send, rows: Sequence[Row]) -> Sequence[Result]:
        async def sent() -> list[Result]:
            return checked(await send([row.event for row in rows]), len(rows))

        results = await attempt(sent(), self.settings.longest_send or self._time_for(rows))
        return Broken([results] * len(rows)) if isinstance(results, Unavailable) else results

    async def _judge(self, rows: Sequence[Row], given: Sequence[Result]) -> Sequence[Result]:
        """Cast votes, record each result, and log what changed."""
        limit = self.settings.retry.timeout
        results = await cast(rows, given, lambda event: self.vote(event, self.name), limit)
        now, max_age = time.time(), self.settings.retry.max_age
        pairs = zip(rows, results, strict=True)
        await self.outgoing.settle(rows, [verdict(*pair, now, max_age) for pair in pairs])
        failed = failures(results)
        self.status.attempts_failed += len(failed)
        if gone := first_gone(results):
            self._failed(gone)
        elif rows and len(failed) == len(rows):
            self._failed(failed[0])
        elif rows:
            self._change("connected", None)
        return results

    def _pace(self, rows: Sequence[Row], results: Sequence[Result]) -> None:
        """Use smaller batches after a whole batch failed, and longer waits for failing keys."""
        failed = sorted(failures(results), key=asked_wait)
        if self.stopped:
            self._waits.release()
            self._pause.release()
            return
        if isinstance(results, Broken):
            self._limit = max(1, len(rows) // 2)
            self._break(failed[-1])
        elif failed and (asked_wait(failed[-1]) or self._pause.asked):
            self._pause.begin(failed[-1])
        if len(failed) < len(rows):
            self._limit, self._breaks = min(self.settings.largest_batch, self._limit * 2), 0
        self._waits.begin(rows, results)

    def _failed(self, problem: Unavailable) -> None:
        """Retry later, or stop until the sink is resumed."""
        self._change("stopped" if isinstance(problem, Gone) else "unavailable", str(problem)[:500])

    def _change(self, state: SinkState, error: str | None) -> None:
        """Log one line per change of state, not per attempt."""
        status = self.status
        if (status.state, status.error) == (state, error):
            return
        if status.state != state:
            level, name = _LEVELS.get(state, logging.INFO), f"sink.{state}"
            log.log(level, name, extra={"sink": self.name, "error": error})
            status.since = time.time()
        status.state, status.error = state, error


def _notice(rows: Sequence[Row]) -> float | None:
    return shortest_notice((row.event for row in rows), time.time())
