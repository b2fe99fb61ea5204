"""From the journal to one sink: in order per key, at least once, never hindering another sink."""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from bridge.journal import Journal, Row, Verdict
from bridge.journal.places import backlog
from bridge.plugins import Place, Result, Send, SinkPlugin, SinkSettings, Unavailable
from bridge.routing import attempt_timeout, is_transition, longest_wait, notice_left, wanted
from bridge.status import SinkStatus
from bridge.supervise import attempt, backoff

log = logging.getLogger(__name__)

BATCH = 500
RETRY_AFTER = 3600.0
"""The longest that a far side may tell us to stay away."""


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
    _progress: asyncio.Event = field(default_factory=asyncio.Event)
    _busy: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run(self) -> None:
        """Enter the sink, send until it must be entered anew, and so on."""
        with self.journal.news() as news:
            while True:
                async with AsyncExitStack() as stack:
                    entering = stack.enter_async_context(
                        self.plugin.open(self.settings, self.place())
                    )
                    send = await attempt(entering, self.settings.retry.timeout)
                    if isinstance(send, Unavailable):
                        await self._not_entered(send)
                    else:
                        self._entries_failed = 0
                        self._change("connected", None)
                        await self._pump(send, news)

    async def drained(self) -> None:
        """Wait until nothing is left for this sink."""
        while (await self.journal.run(lambda store: backlog(store, self.name))).waiting:
            self._progress.clear()
            await self._progress.wait()

    async def between_batches(self) -> None:
        """Wait until no batch is under way, so that stopping leaves nothing in doubt."""
        async with self._busy:
            return

    async def _not_entered(self, problem: Unavailable) -> None:
        """The far side is not there: that is a failed attempt for what waits at the head."""
        self._change("unavailable", str(problem))
        rows = await self._waiting()
        await self._judge(rows, [problem] * len(rows))
        self._held.clear()
        self._entries_failed += 1
        most = min((longest_wait(self._notice(row)) for row in rows), default=longest_wait(None))
        wait = problem.retry_after or backoff(self._entries_failed, most=most)
        await asyncio.sleep(min(wait, RETRY_AFTER))

    async def _pump(self, send: Send, news: asyncio.Event) -> None:
        """Send batches until one fails as a whole."""
        while True:
            news.clear()
            rows = await self._choose(await self._waiting())
            if rows is None:
                continue
            if not rows:
                await self._rest(news)
                continue
            async with self._busy:
                results = await self._send(send, rows)
                await self._judge(rows, results)
            if isinstance(results, _Broken):
                return

    async def _waiting(self) -> list[Row]:
        now = time.time()
        self._held = {key: until for key, until in self._held.items() if until > now}
        blocked = frozenset(self._held)
        return await self.journal.run(
            lambda store: store.unsettled(self.name, self._limit, blocked)
        )

    async def _choose(self, rows: list[Row]) -> list[Row] | None:
        """Settle what need not be sent; None when that made room for more."""
        verdicts = [verdict for row in rows if (verdict := await self._unsent(row))]
        if not verdicts:
            return rows
        self.status.filtered += len(verdicts)
        await self._settle(verdicts)
        return None

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
        wait = None if soonest is None else max(0.0, soonest - time.time())
        try:
            async with asyncio.timeout(wait):
                await news.wait()
        except TimeoutError:
            return

    async def _send(self, send: Send, rows: Sequence[Row]) -> Sequence[Result]:
        left = [notice for row in rows if (notice := self._notice(row)) is not None]
        limit = attempt_timeout(self.settings.retry.timeout, min(left, default=None))
        results = await attempt(send([row.event for row in rows]), limit)
        if isinstance(results, Unavailable):
            return _Broken([results] * len(rows))
        if len(results) != len(rows):
            wrong = Unavailable(f"gave {len(results)} results for {len(rows)} CloudEvents")
            return _Broken([wrong] * len(rows))
        return results

    async def _judge(self, rows: Sequence[Row], results: Sequence[Result]) -> None:
        """Write down what became of each, hold back the keys that failed, and say what changed."""
        now = time.time()
        verdicts = [
            self._verdict(row, result, now) for row, result in zip(rows, results, strict=True)
        ]
        await self._settle(verdicts)
        failures = [result for result in results if isinstance(result, Unavailable)]
        self.status.attempts_failed += len(failures)
        if isinstance(results, _Broken):
            self._limit = max(1, self._limit // 2)
        elif len(failures) < len(rows):
            self._limit = min(BATCH, self._limit * 2)
        self._hold(rows, results, now)
        if rows and len(failures) == len(rows):
            self._change("unavailable", str(failures[0]))
        elif rows:
            self._change("connected", None)

    def _verdict(self, row: Row, result: Result, now: float) -> Verdict:
        if result is None:
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
        fields = {"sink": self.name, "id": row.event.id, "type": row.event.type}
        log.error("sink.dead_letter", extra={**fields, "reason": reason})
        return Verdict(row.event.id, "dead", reason)

    def _hold(self, rows: Sequence[Row], results: Sequence[Result], now: float) -> None:
        """Only the key that failed waits; what failed together is tried again together."""
        draw = random.random()
        for row, result in zip(rows, results, strict=True):
            if isinstance(result, Unavailable):
                most = longest_wait(self._notice(row))
                wait = backoff(row.attempts + 1, most=most, rng=lambda: draw)
                self._held[row.event.key] = now + min(result.retry_after or wait, RETRY_AFTER)

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
