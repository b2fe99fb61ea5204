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
from bridge.delivery.outage import SinkOutage
from bridge.delivery.outbox import Outgoing, Urgent
from bridge.delivery.results import Broken, failures, first_gone, verdict
from bridge.delivery.rules import asked_wait, attempt_timeout, checked, shortest_notice
from bridge.delivery.vote_on_success import CastVote, cast, no_vote
from bridge.journal import Journal, Row
from bridge.plugins import Gone, Place, Result, Send, SinkPlugin, SinkSettings, Unavailable
from bridge.runtime.status import SinkState, SinkStatus

log = logging.getLogger(__name__)

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
    _outage: SinkOutage = field(init=False)
    _waits: Waits = field(default_factory=Waits)
    _pause: Pause = field(default_factory=Pause)
    _idle: float | None = None
    """Seconds until something may be sent that waits already; None: nothing waits."""
    _entries_failed: int = 0
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock)
    _entered: Place = field(default_factory=Place)

    def __post_init__(self) -> None:
        self.outgoing = Outgoing(self.name, self.settings, self.journal, self.status)
        self._outage = SinkOutage(self.settings.largest_batch)

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
            left = self._pause.left(_start(await self.outgoing.most_urgent()))
            if left <= 0 or (not self._entries_failed and await self._new()):
                return
            await heard(news, left)

    async def _session(self, stack: AsyncExitStack, news: asyncio.Event) -> None:
        limit = self._time_for(await self._next())
        loss = Loss(news)
        send = await attempt(self._enter(stack, loss), limit)
        if isinstance(send, Unavailable):
            await self._not_entered(send)
            return
        self._reached()
        await self._pump(send, news, loss)

    def _reached(self) -> None:
        """The sink is entered. That proves a connection, or that its receiver is there to try."""
        if self._entries_failed or self.status.state == "untried":
            self._change("connected" if self.settings.connects else "untried", None)
        if self._entries_failed:
            self._pause.recovered()
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
                await self._lose(loss.problem)
                return
            if self.place() != self._entered:  # the VM's name is known now, for topics
                return
            rows = await self._next()
            if not rows:
                await heard(news, self._idle)
                continue
            async with self._busy:
                results = await self._send(send, rows)
                results = await self._judge(rows, results)
                await self._pace(rows, results)
            if isinstance(results, Broken):
                return

    async def _lose(self, problem: Unavailable) -> None:
        """Note a lost connection. No attempt has failed: reconnecting is enough."""
        self._failed(problem)
        self._entries_failed = self._entries_failed or 1
        await self._fail_whole(problem, [])

    async def _fail_whole(self, problem: Unavailable, rows: Sequence[Row]) -> None:
        """Pause the sink: the rows that failed are probably not the reason.

        New rows get their one try in the pause. Their failure begins another pause only when one
        of them may have made the others fail, or when the receiver asks for one.
        """
        outage = self._outage
        are_new = outage.lasts and rows and rows[0].seq > outage.newest
        if not outage.lasts:
            outage.begin(await self.outgoing.newest(), rows)
        if are_new and not outage.count_new(rows) and not asked_wait(problem):
            return
        outage.count(rows)
        self._pause.begin(problem, *outage.pace)

    async def _next(self) -> list[Row]:
        """What to send now; if there is nothing, `_idle` says for how long.

        While the receiver wants us to stay away, that is only the most urgent row.
        """
        blocked = self._waits.keys()
        self._idle = self._waits.soonest()
        if not self._pause.asked and not self._outage.lasts:
            return await self.outgoing.next(self._outage.limit, blocked)
        urgent = await self.outgoing.most_urgent()
        left = self._pause.left(_start(urgent))
        if self._pause.asked:
            self._idle = max(left, self._waits.left(urgent.key) if urgent else 0.0)
            return await self._urgent(blocked)
        if left > 0:
            self._idle = left
            return await self._new()
        return await self._in_turn(blocked)

    async def _new(self) -> list[Row]:
        """Rows that were recorded during the outage and were not tried yet."""
        outage = self._outage
        if self._pause.asked or not outage.lasts:
            return []
        if await self.outgoing.newest() < outage.newest:
            outage.newest = 0  # the journal was replaced, and its numbers begin anew
        return await self.outgoing.next(outage.largest, self._waits.keys(), after=outage.newest)

    async def _in_turn(self, blocked: frozenset[str]) -> list[Row]:
        """The next rows in turn, after the most urgent one: others may fail before its turn."""
        outage, limit = self._outage, self._outage.limit
        rows = await self.outgoing.next(limit, blocked, after=outage.turn)
        rows = rows or await self.outgoing.next(limit, blocked)
        first = await self._urgent(blocked) if len(rows) == limit else []
        keys = {row.event.key for row in first}
        rows = [row for row in rows if row.event.key not in keys][: limit - len(first)]
        outage.reached = rows[-1].seq if rows else outage.turn
        return [*first, *rows]

    async def _urgent(self, blocked: frozenset[str]) -> list[Row]:
        """The row with the least notice, or none while it has to wait."""
        while urgent := await self.outgoing.most_urgent():
            if urgent.key in blocked or self._pause.left(_start(urgent)) > 0:
                return []
            if rows := await self.outgoing.next(1, blocked, urgent.key):
                return rows
        return []

    def _time_for(self, rows: Sequence[Row]) -> float:
        return attempt_timeout(self.settings.retry.timeout, _notice(rows))

    async def _send(self, send: Send, rows: Sequence[Row]) -> Sequence[Result]:
        async def sent() -> list[Result]:
            events = await self.outgoing.events(rows, self._entered.scope)
            return checked(await send(events), len(rows))

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

    async def _pace(self, rows: Sequence[Row], results: Sequence[Result]) -> None:
        """Pause the sink after a whole batch failed, and make each failed key wait."""
        failed = sorted(failures(results), key=asked_wait)
        if self.stopped:
            self._waits.release()
            self._pause.release()
            return
        self._waits.begin(rows, results)
        if len(failed) < len(rows):
            self._outage.end()
            self._pause.recovered()
        elif isinstance(results, Broken) or len(rows) > 1 or self._outage.lasts:
            await self._fail_whole(failed[-1], rows)
            return
        if failed and (asked_wait(failed[-1]) or self._pause.asked):
            self._pause.begin(failed[-1])

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


def _start(urgent: Urgent | None) -> float | None:
    return urgent.start if urgent else None


def _notice(rows: Sequence[Row]) -> float | None:
    return shortest_notice((row.event for row in rows), time.time())
