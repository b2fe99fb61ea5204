"""One sink's part of the journal: what it gets next, and what it need not get."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from bridge.common.supervise import attempt
from bridge.core.cloudevent import CloudEvent
from bridge.delivery.present import with_present
from bridge.delivery.results import began, given_up
from bridge.delivery.rules import planned_start, wanted
from bridge.journal import Journal, Row, Settlement
from bridge.journal.cursors import announced, overtaken, waits
from bridge.journal.store import Store, newest
from bridge.plugins import Format, SinkSettings, Unavailable, open_format
from bridge.runtime.status import SinkStatus

log = logging.getLogger(__name__)

_AT_ONCE = 500
_NEWEST = 200
"""How many waiting announcements are compared to find the most urgent one."""
_LOOK_AGAIN = 3600.0
"""How often to check what waits for a stopped sink: clocks jump."""


@dataclass(frozen=True, slots=True)
class Urgent:
    """An announcement that waits, and when Azure starts the event."""

    key: str
    start: float


@dataclass(slots=True)
class Outgoing:
    """Reads and settles rows under the sink's name."""

    name: str
    settings: SinkSettings
    journal: Journal
    status: SinkStatus
    _format: Format | None = None
    _found: tuple[tuple[Store, int], list[Urgent]] | None = None
    _progress: asyncio.Event = field(default_factory=asyncio.Event)

    async def next(
        self, limit: int, blocked: frozenset[str], key: str | None = None, after: int = 0
    ) -> list[Row]:
        """What to send now, of one key or of all; what need not be sent is settled on the way."""
        while True:
            rows = await self.journal.run(
                lambda store: store.unsettled(self.name, limit, blocked, key, after)
            )
            words = await self._words_for([row.event for row in rows])
            unsent = [await self._unsent(row, known=k) for row, k in zip(rows, words, strict=True)]
            verdicts = [verdict for verdict in unsent if verdict]
            if not verdicts:
                return rows
            self.status.filtered += len(verdicts)
            await self._write(verdicts)

    async def events(self, rows: Sequence[Row], scope: Literal["own", "all"]) -> list[CloudEvent]:
        """What `send` gets: the CloudEvents, for some sinks with what they change."""
        if not self.settings.keeps_state:
            return [row.event for row in rows]
        return await self.journal.run(lambda store: with_present(store, self.name, rows, scope))

    async def newest(self) -> int:
        """The number of the row that was recorded last."""
        return await self.journal.run(lambda store: newest(store.connection))

    async def most_urgent(self) -> Urgent | None:
        """Of what waits, the announcement with the least notice; older rows of its key go first."""
        waiting, now = await self.journal.run(self._announced), time.time()
        ahead = (one for one in waiting if one.start > now)
        return min(ahead, key=lambda one: one.start, default=None)

    def _announced(self, store: Store) -> list[Urgent]:
        """Read what waits, unless nothing was written since the last time."""
        as_of = (store, store.connection.total_changes)
        if self._found is None or self._found[0] != as_of:
            waiting = announced(store, self.name, _NEWEST)
            wished = [event for event in waiting if wanted(event, self.settings.only)]
            starts = [(event.key, planned_start(event)) for event in wished]
            self._found = as_of, [Urgent(key, start) for key, start in starts if start is not None]
        return self._found[1]

    async def _unsent(self, row: Row, *, known: bool) -> Settlement | None:
        if not known or not wanted(row.event, self.settings.only):
            return Settlement(row.event.id, "filtered", tried=False)
        if self.settings.stale == "skip" and row.event.is_transition:
            late = await self.journal.run(
                lambda store: overtaken(store, self.name, row.event.key, row.seq)
            )
            return Settlement(row.event.id, "overtaken", tried=False) if late else None
        return None

    async def _words_for(self, events: Sequence[CloudEvent]) -> Sequence[bool]:
        """Whether the format supports each; if even that fails, `encode` reports the error."""
        if self.settings.format is None:
            return [True] * len(events)

        async def asked() -> list[bool]:
            form = self._format = self._format or open_format(self.settings)
            return [form.wants(event) is not False for event in events]

        words = await attempt(asked(), self.settings.retry.timeout)
        if not isinstance(words, Unavailable):
            return words
        if len(events) == 1:
            return [True]
        return [(await self._words_for([event]))[0] for event in events]

    async def settle(self, rows: Sequence[Row], verdicts: Sequence[Settlement]) -> None:
        """Record the result of each row, and count it."""
        for row, verdict in zip(rows, verdicts, strict=True):
            self._count(row, verdict)
        await self._write(verdicts)

    def _count(self, row: Row, verdict: Settlement) -> None:
        about = {"sink": self.name, "id": row.event.id, "type": row.event.type}
        if log.isEnabledFor(logging.DEBUG):
            result = {"result": verdict.how or "failed", "error": verdict.error}
            log.debug("sink.attempted", extra={**about, **result})
        if verdict.how == "delivered":
            self.status.delivered += 1
            self.status.latency.observe(max(0.0, time.time() - row.recorded))
        elif verdict.how == "dead":
            self.status.rejected += 1
            letter = {"dead_letter": f"{self.name}:{row.seq}", "reason": verdict.error}
            log.error("sink.dead_letter", extra={**about, **letter})

    async def _write(self, verdicts: Sequence[Settlement]) -> None:
        if verdicts:
            await self.journal.settle(self.name, verdicts, time.time())
        self._progress.set()

    async def give_up(self) -> float:
        """Give up what waits too long for a stopped sink; return seconds until the next is due."""
        since, max_age = self.status.since, self.settings.retry.max_age
        while True:
            rows, now = await self.next(_AT_ONCE, frozenset()), time.time()
            old = [row for row in rows if now - began(row, since) >= max_age]
            if not old:
                ends = (began(row, since) + max_age - now for row in rows)
                return min([_LOOK_AGAIN, *ends])
            await self.settle(old, [given_up(row, self.status.error) for row in old])

    async def drained(self) -> None:
        """Wait until nothing is left for this sink, or until it has stopped."""
        while True:
            self._progress.clear()
            left = await self.journal.run(lambda store: waits(store, self.name))
            if not left or self.status.state == "stopped":
                return
            await self._progress.wait()
