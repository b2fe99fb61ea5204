"""Receivers in this process, with little work for each message: webhook, syslog, file."""

import asyncio
import contextlib
import re
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path

from bench.servers.tally import Channel, Tally

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
_SUCCESS = b'{"text":"Success","code":0}'
_ACCEPTED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_SUCCESS),
    _SUCCESS,
)
_ENVELOPES = re.compile(rb'(?<=\})(?=\{"time":)')
_LOOK = 0.0003
"""Seconds between two looks at a file."""


class _Posts(asyncio.Protocol):
    """As much of HTTP as a POST with a length needs; *took* gets its body."""

    def __init__(
        self, took: Callable[[bytes], None], answer: bytes, frozen: Callable[[], bool]
    ) -> None:
        self._took, self._answer, self._frozen = took, answer, frozen
        self._data = bytearray()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (head := self._data.find(b"\r\n\r\n")) >= 0:
            found = _LENGTH.search(self._data, 0, head + 2)
            end = head + 4 + (int(found[1]) if found else 0)
            if len(self._data) < end or self._frozen():
                return
            self._took(bytes(self._data[head + 4 : end]))
            del self._data[:end]
            self._transport.write(self._answer)


class _Syslog(asyncio.Protocol):
    """Messages with their length before them, as in RFC 6587."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._data = bytearray()

    def data_received(self, data: bytes) -> None:
        self._data += data
        start = 0
        while (space := self._data.find(b" ", start)) >= 0:
            end = space + 1 + int(self._data[start:space])
            if len(self._data) < end:
                break
            self._tally.took(bytes(self._data[space + 1 : end]))
            start = end
        del self._data[:start]


@contextlib.asynccontextmanager
async def _listening(protocol: Callable[[], asyncio.Protocol]) -> AsyncGenerator[int]:
    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@contextlib.asynccontextmanager
async def webhook(frozen: Callable[[], bool] = lambda: False) -> AsyncGenerator[Channel]:
    """While *frozen*, it accepts connections and requests and answers nothing."""
    tally = Tally()
    async with _listening(lambda: _Posts(tally.took, _EMPTY, frozen)) as port:
        yield Channel({"type": "webhook", "url": f"http://127.0.0.1:{port}/"}, tally)


@contextlib.asynccontextmanager
async def splunk() -> AsyncGenerator[Channel]:
    """A collector that accepts everything; each envelope counts."""
    tally = Tally()

    def took(body: bytes) -> None:
        for envelope in _ENVELOPES.split(body):
            tally.took(envelope)

    async with _listening(lambda: _Posts(took, _ACCEPTED, lambda: False)) as port:
        url = f"http://127.0.0.1:{port}"
        yield Channel({"type": "splunk", "url": url, "token": "bench"}, tally)


@contextlib.asynccontextmanager
async def syslog() -> AsyncGenerator[Channel]:
    tally = Tally()
    async with _listening(lambda: _Syslog(tally)) as port:
        yield Channel({"type": "syslog", "address": f"tcp://127.0.0.1:{port}"}, tally)


@contextlib.asynccontextmanager
async def file(folder: Path) -> AsyncGenerator[Channel]:
    """A file on disk; a line has arrived when it can be read."""
    path = folder / "events.jsonl"
    with _followed(path) as tally:
        yield Channel({"type": "file", "path": str(path)}, tally)


@contextlib.asynccontextmanager
async def stdout(folder: Path) -> AsyncGenerator[Channel]:
    path = folder / "stdout"
    with _followed(path) as tally:
        yield Channel({"type": "stdout"}, tally, path)


@contextlib.asynccontextmanager
async def command(folder: Path) -> AsyncGenerator[Channel]:
    """A shell that appends what it gets to a file."""
    path = folder / "got"
    script = f"read -r line; printf '%s\\n' \"$line\" >>{path}"
    with _followed(path) as tally:
        yield Channel({"type": "command", "argv": ["/bin/sh", "-c", script]}, tally)


@contextlib.contextmanager
def _followed(path: Path) -> Iterator[Tally]:
    """Counts the lines of a file as they are written."""
    tally, ended = Tally(), threading.Event()
    reader = threading.Thread(target=_follow, args=(path, tally, ended))
    reader.start()
    try:
        yield tally
    finally:
        ended.set()
        reader.join()


def _follow(path: Path, tally: Tally, ended: threading.Event) -> None:
    rest, position = b"", 0
    while not ended.is_set():
        time.sleep(_LOOK)
        if not path.exists() or path.stat().st_size <= position:
            continue
        with path.open("rb") as opened:
            opened.seek(position)
            new = opened.read()
        position += len(new)
        *lines, rest = (rest + new).split(b"\n")
        for line in lines:
            tally.took(line)
