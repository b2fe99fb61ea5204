"""Delivers a batch in as few requests as its size allows, and follows each event's receipt."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from bridge.plugins import CloudEvent, Format, Place, Rejected, Result, Send, Unavailable
from sinks._limit import batch_limit
from sinks.splunk.binding import open_envelopes
from sinks.splunk.connection import Collector
from sinks.splunk.errors import SLOW, Accepted, Outcome, Refused
from sinks.splunk.settings import SplunkSettings

LARGEST_REQUEST = 1024 * 1024
"""Bytes of events in one request; one that Splunk finds too large is halved."""
PATIENCE = 300.0
"""Seconds after which an event that was accepted but not indexed is sent again."""
_FIRST_LOOK, _RAREST_LOOK = 0.1, 2.0
_BREATH = 16
"""How many are encoded before other tasks get a turn."""
_NOT_INDEXED = "accepted, but not indexed yet"


@asynccontextmanager
async def open_sink(settings: SplunkSettings, place: Place) -> AsyncGenerator[Send]:
    async with Collector.open(settings, place) as collector:
        if settings.acknowledge:
            # A token without receipts would accept the same events again and again.
            await collector.acknowledge()
        else:
            await collector.look()
        yield OpenSink(collector, open_envelopes(settings), batch_limit(settings)).send


@dataclass(frozen=True, slots=True)
class _Item:
    """An event on its way, and its place in the batch."""

    place: int
    id: str
    envelope: bytes


@dataclass(slots=True)
class OpenSink:
    """`limit` is for one batch, in seconds.

    Receipts outlive a batch: the sink asks for accepted events instead of sending them again.
    """

    collector: Collector
    form: Format
    limit: float
    _receipts: dict[str, tuple[int, float]] = field(default_factory=dict)

    async def send(self, batch: Sequence[CloudEvent]) -> list[Result]:
        results: list[Result] = [Unavailable(f"no answer within {self.limit:g} s")] * len(batch)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.limit):
                await self._deliver(batch, results)
        return results

    async def _deliver(self, batch: Sequence[CloudEvent], results: list[Result]) -> None:
        """Fill in *results*; what is not settled in time stays as it is."""
        self._forget_old()
        said = await self._said(batch)
        problem: Unavailable | None = None
        for items in self._requests(batch, said, results):
            problem = problem or await self._post(items, results)
            if problem is not None:
                _all(items, results, problem)
        if self.collector.settings.acknowledge:
            await self._confirm(batch, results)

    async def _said(self, batch: Sequence[CloudEvent]) -> list[bytes | Rejected]:
        said: list[bytes | Rejected] = []
        for place in range(0, len(batch), _BREATH):
            await asyncio.sleep(0)
            said += self.form.encode_each(batch[place : place + _BREATH])
        return said

    def _requests(
        self,
        batch: Sequence[CloudEvent],
        said: Sequence[bytes | Rejected],
        results: list[Result],
    ) -> Iterator[list[_Item]]:
        """The events to send, split where a request would become too large."""
        items: list[_Item] = []
        size = 0
        for place, (cloudevent, envelope) in enumerate(zip(batch, said, strict=True)):
            if isinstance(envelope, Rejected):
                results[place] = envelope
                continue
            if cloudevent.id in self._receipts:
                continue
            if items and size + len(envelope) > LARGEST_REQUEST:
                yield items
                items, size = [], 0
            items.append(_Item(place, cloudevent.id, envelope))
            size += len(envelope)
        if items:
            yield items

    async def _post(self, items: list[_Item], results: list[Result]) -> Unavailable | None:
        """Send until each event is accepted or rejected; return what stopped it, if any."""
        waiting = [items]
        while waiting:
            part = waiting.pop()
            verdict = await self._try(part)
            if isinstance(verdict, Unavailable):
                for rest in waiting:
                    _all(rest, results, verdict)
                _all(part, results, verdict)
                return verdict
            if isinstance(verdict, Accepted):
                self._accepted(part, verdict, results)
            else:
                waiting += _without_rejected(part, verdict, results)
        return None

    async def _try(self, part: Sequence[_Item]) -> Outcome:
        try:
            verdict = await self.collector.post([item.envelope for item in part])
        except Unavailable as error:
            return error
        acknowledge = self.collector.settings.acknowledge
        if acknowledge and isinstance(verdict, Accepted) and verdict.receipt is None:
            why = "it gives no receipts; enable them for the token, or set acknowledge: false"
            return Unavailable(why, retry_after=SLOW)
        return verdict

    def _accepted(self, part: Sequence[_Item], verdict: Accepted, results: list[Result]) -> None:
        if not self.collector.settings.acknowledge or verdict.receipt is None:
            _all(part, results, None)
            return
        _all(part, results, Unavailable(_NOT_INDEXED))
        now = time.monotonic()
        self._receipts |= {item.id: (verdict.receipt, now) for item in part}

    async def _confirm(self, batch: Sequence[CloudEvent], results: list[Result]) -> None:
        """Ask, at growing intervals, until all accepted events are indexed or the time is over."""
        ours = {event.id: place for place, event in enumerate(batch) if event.id in self._receipts}
        for place in ours.values():
            results[place] = Unavailable(_NOT_INDEXED)
        pause = _FIRST_LOOK
        while ours:
            try:
                done = await self.collector.settled(
                    sorted({self._receipts[id_][0] for id_ in ours})
                )
            except Unavailable as error:
                for place in ours.values():
                    results[place] = error
                return
            for id_ in [id_ for id_ in ours if self._receipts[id_][0] in done]:
                results[ours.pop(id_)] = None
                del self._receipts[id_]
            if ours:
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, _RAREST_LOOK)

    def _forget_old(self) -> None:
        oldest = time.monotonic() - PATIENCE
        self._receipts = {id_: kept for id_, kept in self._receipts.items() if kept[1] > oldest}


def _without_rejected(
    part: list[_Item], verdict: Refused, results: list[Result]
) -> list[list[_Item]]:
    """What to send again: all others, or both halves when the answer does not name the event."""
    number = 0 if len(part) == 1 else verdict.number
    if number is None or number >= len(part):
        middle = len(part) // 2
        return [part[middle:], part[:middle]]
    results[part[number].place] = Rejected(verdict.why)
    rest = part[:number] + part[number + 1 :]
    return [rest] if rest else []


def _all(items: Iterable[_Item], results: list[Result], result: Result) -> None:
    for item in items:
        results[item.place] = result
