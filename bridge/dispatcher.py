"""From the journal to one sink: in order per key, at least once, never hindering another sink."""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.journal import Journal, Row, Verdict
from bridge.journal.places import backlog
from bridge.plugins import Delivered, Place, Result, Send, SinkPlugin, SinkSettings, Unavailable
from bridge.routing import (
    asked_wait,
    attempt_timeout,
    checked,
    is_transition,
    longest_wait,
    notice_left,
    wanted,
)
from bridge.status import SinkStatus
from bridge.supervise import attempt, backoff

log = logging.getLogger(__name__)

BATCH = 500
BREATH = 1.0
"""The longest pause before a sink is entered anew because a whole batch failed."""


@dataclass(slots=True)
class Dispatcher:
    """One sink's worker. `run` never returns; cancel it when the time for draining is over."""

    name: str
    plugin: SinkPlugin[Any]
    settings: SinkSettings
    place: Callable[[], Place]
    journal: Journal
    status: SinkStatus
    _held: dict[str, float] = field(default_factory=dict)
    _limit: int = BATCH
    _entries_failed: int = 0
    _breaks: int = 0
    _progress: asyncio.Event = field(default_factory=asyncio.Event)
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self) -> None:
        """Enter the sink, send until it must be entered anew, and so on."""
        with self.journal.news() as news:
            while True:
                stack = AsyncExitStack()
                try:
                    await self._session(stack, news)
                finally:
                    await self._leave(stack)

    async def _session(self, stack: AsyncExitStack, news: asyncio.Event) -> None:
        if self._breaks:
            await asyncio.sleep(backoff(self._breaks, first=BREATH / 16, most=BREATH))
        limit = self._time_for(await self._next())
        send = await attempt(self._enter(stack), limit)
        if isinstance(send, Unavailable):
            await self._not_entered(send, news)
            return
        if self._entries_failed or self.status.state == "starting":
            self._change("connected", None)
        self._entries_failed = 0
        await self._pump(send, news)

    async def _enter(self, stack: AsyncExitStack) -> Send:
        here = replace(self.place(), sink=self.name)
        return await stack.enter_async_context(self.plugin.open(self.settings, here))

    async def _leave(self, stack: AsyncExitStack) -> None:
        """A sink that cannot let go keeps nobody waiting for ever."""
        problem = await attempt(stack.aclose(), self.settings.retry.timeout)
        if isinstance(problem, Unavailable):
            log.warning("sink.not_closed", extra={"sink": self.name, "error": str(problem)})

    async def drained(self) -> None:
        """Wait until nothing is left for this sink."""
        while True:
            self._progress.clear()
            left = await self.journal.run(lambda store: backlog(store, self.name))
            if not left.waiting:
                return
            await self._progress.wait()

    async def between_batches(self) -> None:
        """Wait until no batch is under way, so that stopping leaves nothing in doubt."""
        async with self._busy:
            return

    async def _not_entered(self, problem: Unavailable, news: asyncio.Event) -> None:
        """The far side is not there: that is a failed attempt for what waits at the head."""
        self._change("unavailable", str(problem))
        rows = await self._next()
        held = dict(self._held)
        await self._judge(rows, [problem] * len(rows))
        self._held = held
        self._entries_failed += 1
        asked = asked_wait(problem)
        wait = asked or backoff(self._entries_failed, most=self._patience(rows))
        until = time.monotonic() + wait
        while await _heard(news, until - time.monotonic()):
            news.clear()
            # What came may have less notice than what was there.
            if not asked:
                until = min(until, time.monotonic() + self._patience(await self._next()))

    def _time_for(self, rows: Sequence[Row]) -> float:
        left = [notice for row in rows if (notice := self._notice(row)) is not None]
        return attempt_timeout(self.settings.retry.timeout, min(left, default=None))

    def _patience(self, rows: Sequence[Row]) -> float:
        return min((longest_wait(self._notice(row)) for row in rows), default=longest_wait(None))

    async def _pump(self, send: Send, news: asyncio.Event) -> None:
        """Send batches until one fails as a whole."""
        while True:
            news.clear()
            rows = await self._next()
            if not rows:
                await self._rest(news)
                continue
            async with self._busy:
                results = await self._send(send, rows)
                await self._judge(rows, results)
            if isinstance(results, _Broken):
                return

    async def _next(self) -> list[Row]:
        """What is to be sent now; what need not be sent is settled on the way."""
        while True:
            rows = await self._waiting()
            verdicts = [verdict for row in rows if (verdict := await self._unsent(row))]
            if not verdicts:
                return rows
            self.status.filtered += len(verdicts)
            await self._settle(verdicts)

    async def _waiting(self) -> list[Row]:
        now = time.monotonic()
        self._held = {key: until for key, until in self._held.items() if until > now}
        blocked = frozenset(self._held)
        return await self.journal.run(
            lambda store: store.unsettled(self.name, self._limit, blocked)
        )

    async def _unsent(self, row: Row) -> Verdict | None:
        if not wanted(row.event, self.settings.only):
            return Verdict(row.event.id, "filtered", tried=False)
        if self.settings.stale == "skip" and is_transition(row.event):
            late = await self.journal.run(
                lambda store: store.overtaken(self.name, row.event.key, row.seq)
            )
            return Verdict(row.event.id, "overtaken", tried=False) if late else None
        return None

    async def _rest(self, news: asyncio.Event) -> None:
        """Sleep until there is news, or a held key may be tried again."""
        soonest = min(self._held.values(), default=None)
        await _heard(news, None if soonest is None else soonest - time.monotonic())

    async def _send(self, send: Send, rows: Sequence[Row]) -> Sequence[Result]:
        async def sent() -> list[Result]:
            return checked(await send([row.event for row in rows]), len(rows))

        results = await attempt(sent(), self._time_for(rows))
        return _Broken([results] * len(rows)) if isinstance(results, Unavailable) else results

    async def _judge(self, rows: Sequence[Row], results: Sequence[Result]) -> None:
        """Write down what became of each, hold back the keys that failed, and say what changed."""
        now = time.time()
        pairs = zip(rows, results, strict=True)
        await self._settle([self._verdict(row, result, now) for row, result in pairs])
        failures = [result for result in results if isinstance(result, Unavailable)]
        self.status.attempts_failed += len(failures)
        if isinstance(results, _Broken):
            self._limit, self._breaks = max(1, len(rows) // 2), self._breaks + 1
        elif len(failures) < len(rows):
            self._limit, self._breaks = min(BATCH, self._limit * 2), 0
        self._hold(rows, results)
        if rows and len(failures) == len(rows):
            self._change("unavailable", str(failures[0]))
        elif rows:
            self._change("connected", None)

    def _verdict(self, row: Row, result: Result, now: float) -> Verdict:
        if result is None or isinstance(result, Delivered):
            self.status.delivered += 1
            self.status.latency.observe(max(0.0, now - row.recorded))
            return Verdict(row.event.id, "delivered")
        reason = str(result)[:500] or type(result).__name__
        age = now - (row.first or now)
        if isinstance(result, Unavailable) and age < self.settings.retry.max_age:
            return Verdict(row.event.id, None, reason)
        if isinstance(result, Unavailable):
            reason = f"not delivered within retry.max_age; last: {reason}"
        self.status.rejected += 1
        about = {"id": row.event.id, "type": row.event.type, "reason": reason}
        log.error("sink.dead_letter", extra={"sink": self.name, **about})
        return Verdict(row.event.id, "dead", reason)

    def _hold(self, rows: Sequence[Row], results: Sequence[Result]) -> None:
        """Only the key that failed waits; what failed together is tried again together."""
        now, draw = time.monotonic(), random.random()
        for row, result in zip(rows, results, strict=True):
            if isinstance(result, Unavailable):
                wait = backoff(row.attempts + 1, most=self._patience([row]), rng=lambda: draw)
                self._held[row.event.key] = now + (asked_wait(result) or wait)

    async def _settle(self, verdicts: Sequence[Verdict]) -> None:
        if verdicts:
            await self.journal.settle(self.name, verdicts, time.time())
        self._progress.set()

    @staticmethod
    def _notice(row: Row) -> float | None:
        return notice_left(row.event, time.time())

    def _change(self, state: Any, error: str | None) -> None:
        """One line for each change of state, not for each attempt."""
        status = self.status
        if (status.state, status.error) == (state, error):
            return
        if status.state != state:
            level = logging.WARNING if state == "unavailable" else logging.INFO
            name = f"sink.{state}"
            log.log(level, name, extra={"sink": self.name, "error": error})
            status.since = time.time()
        status.state, status.error = state, error


class _Broken(list[Result]):
    """Results of a batch that failed as a whole: the sink must be entered anew."""


async def _heard(news: asyncio.Event, seconds: float | None) -> bool:
    """Wait for news; whether there was any in time."""
    try:
        async with asyncio.timeout(seconds):
            return await news.wait()
    except TimeoutError:
        return False
