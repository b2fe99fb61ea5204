"""Server-Sent Events: every CloudEvent as it is recorded, from where the reader left off."""

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from aiohttp import web

from bridge.core.cloudevent import CloudEvent
from bridge.journal import Journal, SetAside, views
from bridge.journal.store import Store
from bridge.runtime.refusals import UnpublishedRefusals
from bridge.web.problems import ProblemDetails

Era = tuple[int, bool]
"""Row numbers are comparable within one era of the journal."""
_BATCH = 20
_BATCHES_KEPT = 8
_HEADERS = {
    "Content-Type": "text/event-stream",
    "X-Accel-Buffering": "no",  # nginx would keep what is sent until its buffer is full
}
_LINE_END = re.compile(rb"\r\n|\r|\n")


class Batch(NamedTuple):
    """Some CloudEvents as they are sent, and the row and id of the last one."""

    seq: int
    last: str
    text: bytes


@dataclass(slots=True)
class SharedBatches:
    """Reads and encodes each batch once, however many readers are at the same place."""

    reads: int = 0
    _era: Era | None = None
    _kept: dict[tuple[Era, int], Batch] = field(default_factory=dict)
    _running: dict[tuple[Era, int], asyncio.Task[Batch | None]] = field(default_factory=dict)

    async def after(self, journal: Journal, era: Era, seq: int) -> Batch | None:
        """The batch after row *seq*; None if there is none yet."""
        place = (era, seq)
        if era != self._era:  # the same row numbers may come again, with other content
            self._kept.clear()
            self._era = era
        if place in self._kept:
            return self._kept[place]
        joined = place in self._running
        found = await self._read(journal, place)
        # A read that began before our wake-up may have missed what woke us.
        return await self._read(journal, place) if found is None and joined else found

    async def _read(self, journal: Journal, place: tuple[Era, int]) -> Batch | None:
        if place not in self._running:
            task = asyncio.create_task(self._fetch(journal, place), name="stream batch")
            self._running[place] = task
            task.add_done_callback(lambda done: self._forget(place, done))
        return await asyncio.shield(self._running[place])

    def _forget(self, place: tuple[Era, int], done: asyncio.Task[Batch | None]) -> None:
        del self._running[place]
        if not done.cancelled():
            done.exception()  # those who wait get it; they may have left

    async def _fetch(self, journal: Journal, place: tuple[Era, int]) -> Batch | None:
        self.reads += 1
        rows = await journal.run(lambda store: views.after(store, place[1], _BATCH))
        if not rows:
            return None
        seq, last = rows[-1]
        made = Batch(seq, last.id, b"".join(encode(event) for _, event in rows))
        while len(self._kept) >= _BATCHES_KEPT:
            del self._kept[next(iter(self._kept))]
        if place[0] == self._era:
            self._kept[place] = made
        return made


@dataclass(slots=True)
class Streams:
    """All open streams, up to a limit; they end when the bridge stops."""

    most: int = 224
    heartbeat: float = 15.0
    patience: float = 30.0
    closed: bool = False
    batches: SharedBatches = field(default_factory=SharedBatches)
    _open: dict[asyncio.Event, web.Request] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The readers that are still connected; a reader that left makes room immediately."""
        return sum(request.transport is not None for request in self._open.values())

    def close(self) -> None:
        self.closed = True
        for news in self._open:
            news.set()

    def _wake_departed(self) -> None:
        for news, request in self._open.items():
            if request.transport is None:
                news.set()

    @contextmanager
    def place(self, request: web.Request, journal: Journal) -> Generator[asyncio.Event]:
        """Reserve a place for one stream; yields the event that wakes it."""
        if self.closed:
            raise ProblemDetails(503, "The bridge is stopping.")
        self._wake_departed()
        if self.count >= self.most:
            sentence = f"All {self.most} streams are in use."
            raise ProblemDetails(503, sentence, Retry_After="10")
        with journal.news() as news:
            self._open[news] = request
            try:
                yield news
            finally:
                del self._open[news]


async def stream(
    request: web.Request, cursor: "Cursor", streams: Streams, may: Callable[[], bool]
) -> web.StreamResponse:
    """Stream until the reader leaves, stops reading or *may* not read, or the bridge stops."""
    with streams.place(request, cursor.journal) as news:
        await cursor.begin(_text(request.headers.get("Last-Event-ID")))
        response = web.StreamResponse(headers=_HEADERS)
        await response.prepare(request)
        # A reader that left is not an error. One that does not read is dropped, and so are all
        # while the journal cannot be read. They may reconnect.
        with suppress(ConnectionError, TimeoutError, sqlite3.Error):
            await _talk(_Open(request, response, news, may), cursor, streams)
            return response
        if request.transport is not None:
            request.transport.abort()
    return response


def _text(header: str | None) -> str | None:
    """The header as SQLite takes it: bytes that are not UTF-8 match no id."""
    return header and header.encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class _Open:
    """One stream: its request, its response, what wakes it, and whether it may go on."""

    request: web.Request
    response: web.StreamResponse
    news: asyncio.Event
    may: Callable[[], bool]

    @property
    def goes_on(self) -> bool:
        return self.request.transport is not None and self.may()


async def _talk(one: _Open, cursor: "Cursor", streams: Streams) -> None:
    opening = b"retry: 2000\nevent: connected\n%bdata: {}\n\n" % cursor.opening
    await one.response.write(opening)
    while not streams.closed and one.goes_on:
        one.news.clear()
        try:
            text = await cursor.next()
        except SetAside:
            continue
        text += b"".join(map(encode_stray, cursor.strays()))
        if not text and not await _wait(one.news, streams.heartbeat):
            text = b":\n\n"
        if text:
            async with asyncio.timeout(streams.patience):
                await one.response.write(text)


async def _wait(news: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await news.wait()
    except TimeoutError:
        return False


def encode(event: CloudEvent) -> bytes:
    return b"id: %b\n%b\n" % (event.id.encode(), _data(event.body))


def encode_stray(event: CloudEvent) -> bytes:
    """An event of its own name and without an id: it is not in the journal."""
    marked = json.dumps({**event.envelope, "stray": True}).encode()
    return b"event: stray\n%b\n" % _data(marked)


def _data(body: bytes) -> bytes:
    return b"".join(b"data: %b\n" % line for line in _LINE_END.split(body))


class Cursor:
    """A reader's place in the journal.

    Row numbers change when the journal is replaced or restored from memory; ids stay.
    """

    def __init__(
        self,
        journal: Journal,
        batches: SharedBatches,
        refusals: UnpublishedRefusals | None = None,
    ) -> None:
        self.journal = journal
        self._batches = batches
        self._refusals = refusals
        self._shown = 0 if refusals is None else refusals.total
        self._seq = 0
        self._last: str | None = None
        self._era = self._present()
        self.opening = b""
        """The id of the first event, which is no CloudEvent: without others, resume from there."""

    async def begin(self, last_id: str | None) -> None:
        """Begin after *last_id*, or at the first row if it is gone; without an id, begin now."""
        self._era = self._present()
        if last_id is None:
            self._seq, self._last = await self.journal.run(views.head)
            self.opening = b"id: %b\n" % (self._last or "0").encode()
        else:
            self._last = last_id
            await self._find()

    async def next(self) -> bytes:
        """The next CloudEvents as they are sent; empty if there are none yet."""
        if self._era != self._present():
            self._era = self._present()
            await self._find()
        batch = await self._batches.after(self.journal, self._era, self._seq)
        if batch is None:
            return b""
        self._seq, self._last = batch.seq, batch.last
        return batch.text

    def strays(self) -> list[CloudEvent]:
        """The strays that came since the last call, if the reader wants them."""
        if self._refusals is None:
            return []
        shown, self._shown = self._shown, self._refusals.total
        return self._refusals.strays_after(shown)

    async def _find(self) -> None:
        last = self._last

        def position(store: Store) -> int:
            return (views.position(store, last) or 0) if last is not None else 0

        self._seq = await self.journal.run(position)

    def _present(self) -> Era:
        return self.journal.generation, self.journal.trouble is not None
