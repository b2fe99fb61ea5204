"""Stands between a sink and a real broker, to fail as networks and brokers do.

It speaks Kafka's frames, so that it can put its own address where the broker names itself.
"""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

PRODUCE = 0


@dataclass
class Proxy:
    """`address` is what clients connect to, whatever happens behind it."""

    broker: tuple[str, int]
    port: int = 0
    named: int = 0
    """The port that clients are told to go to next; its own unless set."""
    connections: int = 0
    clients: set[str] = field(default_factory=set)
    produced: int = 0
    """How many bytes of produce requests came by."""
    refused: set[bytes] = field(default_factory=set)
    _open: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def up(self) -> None:
        self._open.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Hang up on everybody and listen no more."""
        assert self._server is not None
        self._server.close()
        await self.hang_up()

    async def hang_up(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stall(self) -> None:
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            there = await asyncio.open_connection(*self.broker)
            try:
                async with asyncio.TaskGroup() as both:
                    for way in (
                        (reader, there[1], self._asked),
                        (there[0], writer, self._answered),
                    ):
                        frames: asyncio.Queue[bytes] = asyncio.Queue()
                        both.create_task(_read(way[0], frames))
                        both.create_task(self._write(way[1], frames, way[2]))
            finally:
                there[1].transport.abort()
        except* (asyncio.CancelledError, OSError, EOFError):
            pass  # the end of a connection, by either side
        finally:
            self._tasks.discard(task)
            self.connections -= 1
            writer.transport.abort()

    async def _write(
        self,
        writer: asyncio.StreamWriter,
        frames: asyncio.Queue[bytes],
        change: Callable[[bytes], bytes],
    ) -> None:
        while True:
            frame = change(await frames.get())
            await self._open.wait()
            writer.write(struct.pack(">i", len(frame)) + frame)
            await writer.drain()

    def _asked(self, frame: bytes) -> bytes:
        """What is to be refused is damaged, so that the broker refuses the batch that holds it."""
        (api,) = struct.unpack(">h", frame[:2])
        (length,) = struct.unpack(">h", frame[8:10])
        self.clients.add(frame[10 : 10 + length].decode())
        if api != PRODUCE:
            return frame
        self.produced += len(frame)
        for mark in self.refused:
            frame = frame.replace(mark, mark[::-1])
        return frame

    def _answered(self, frame: bytes) -> bytes:
        return frame.replace(self._named(self.broker[1]), self._named(self.named or self.port))

    def _named(self, port: int) -> bytes:
        host = b"127.0.0.1"
        return struct.pack(">h", len(host)) + host + struct.pack(">i", port)


async def _read(reader: asyncio.StreamReader, frames: asyncio.Queue[bytes]) -> None:
    """On and on, also while stalled: so it is noticed when somebody hangs up."""
    while True:
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        frames.put_nowait(await reader.readexactly(size))


@contextlib.asynccontextmanager
async def proxied(bootstrap: str) -> AsyncIterator[Proxy]:
    host, _, port = bootstrap.rpartition(":")
    proxy = Proxy((host, int(port)))
    await proxy.up()
    try:
        yield proxy
    finally:
        await proxy.down()
