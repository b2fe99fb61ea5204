"""Server-Sent Events: every CloudEvent as it is recorded, from where the reader left off."""

import asyncio
import json
import re
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from aiohttp import web

from bridge.core.cloudevent import CloudEvent
from bridge.journal import Journal, SetAside, views
from bridge.journal.store import Store
from bridge.runtime.refusals import UnpublishedRefusals
from bridge.web.problems import ProblemDetails

_BATCH = 20
_LINE_END = re.compile(rb"\r\n|\r|\n")


@dataclass(slots=True)
class Streams:
    """All open streams, up to a limit; they end when the bridge stops."""

    most: int = 32
    heartbeat: float = 15.0
    patience: float = 30.0
    closed: bool = False
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


async def stream(request: web.Request, cursor: "Cursor", streams: Streams) -> web.StreamResponse:
    """Stream until the reader leaves, the reader stops reading, or the bridge stops."""
    with streams.place(request, cursor.journal) as news:
        await cursor.begin(_text(request.headers.get("Last-Event-ID")))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        # A reader that left is not an error. One that does not read is dropped, and so are all
        # while the journal cannot be read. They may reconnect.
        with suppress(ConnectionError, TimeoutError, sqlite3.Error):
            await _talk(request, response, cursor, streams, news)
            return response
        if request.transport is not None:
            request.transport.abort()
    return response


def _text(header: str | None) -> str | None:
    """The header as SQLite takes it: bytes that are not UTF-8 match no id."""
    return header and header.encode(errors="replace").decode()


async def _talk(
    request: web.Request,
    response: web.StreamResponse,
    cursor: "Cursor",
    streams: Streams,
    news: asyncio.Event,
) -> None:
    await response.write(b"retry: 2000\n%b\n" % cursor.opening)
    while not streams.closed and request.transport is not None:
        news.clear()
        try:
            events = await cursor.next()
        except SetAside:
            continue
        text = b"".join([*map(encode, events), *map(encode_stray, cursor.strays())])
        if not text and not await _wait(news, streams.heartbeat):
            text = b":\n\n"
        if text:
            async with asyncio.timeout(streams.patience):
                await response.write(text)


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

    def __init__(self, journal: Journal, refusals: UnpublishedRefusals | None = None) -> None:
        self.journal = journal
        self._refusals = refusals
        self._shown = 0 if refusals is None else refusals.total
        self._seq = 0
        self._last: str | None = None
        self._era = self._present()
        self.opening = b""
        """An id without data: a reader that gets nothing else resumes from there."""

    async def begin(self, last_id: str | None) -> None:
        """Begin after *last_id*, or at the first row if it is gone; without an id, begin now."""
        self._era = self._present()
        if last_id is None:
            self._seq, self._last = await self.journal.run(views.head)
            self.opening = b"id: %b\n" % (self._last or "0").encode()
        else:
            self._last = last_id
            await self._find()

    async def next(self) -> list[CloudEvent]:
        if self._era != self._present():
            self._era = self._present()
            await self._find()
        rows = await self.journal.run(lambda store: views.after(store, self._seq, _BATCH))
        if rows:
            self._seq, self._last = rows[-1][0], rows[-1][1].id
        return [event for _, event in rows]

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

    def _present(self) -> tuple[int, bool]:
        return self.journal.generation, self.journal.trouble is not None
