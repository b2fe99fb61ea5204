"""Servers inside the test that fail as networks do: they disconnect, fall silent and come back."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self


@dataclass(kw_only=True)
class Wire:
    """Listens on `port`, the same one whenever it is up."""

    host: str = "127.0.0.1"
    port: int = 0
    _flowing: asyncio.Event = field(default_factory=asyncio.Event)
    _listening: asyncio.Server | None = None
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.down()

    async def up(self) -> None:
        self._flowing.set()
        self._listening = await self.listen()
        self.port = self._listening.sockets[0].getsockname()[1]

    async def listen(self) -> asyncio.Server:
        return await asyncio.start_server(self.serve, self.host, self.port)

    async def down(self) -> None:
        """Close all connections and stop listening."""
        if self._listening is not None:
            await _accept_no_more(self._listening)
            self._listening.close()
        await self.hang_up()

    async def hang_up(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stall(self) -> None:
        """Drop everything in both directions without closing: half open."""
        self._flowing.clear()

    def release(self) -> None:
        self._flowing.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self.attend(reader, writer)
        except* (asyncio.CancelledError, OSError, EOFError):
            writer.transport.abort()  # the end of a connection, by either side
        finally:
            self._tasks.discard(task)

    @abstractmethod
    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, to its end."""


async def _accept_no_more(server: asyncio.Server) -> None:
    """Close a server without leaking the socket of a connection that is being accepted."""
    loop = asyncio.get_running_loop()
    for sock in server.sockets:
        loop.remove_reader(sock.fileno())
    for _ in range(3):
        await asyncio.sleep(0)


@dataclass
class Relay(Wire):
    """Stands between a client and a server, so that `address` never changes."""

    server: tuple[str, int]
    connections: int = field(default=0, kw_only=True)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            there = await asyncio.open_connection(*self.server)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self.lead(reader, there[1], ours=True))
                    both.create_task(self.lead(there[0], writer, ours=False))
            finally:
                there[1].transport.abort()
        finally:
            self.connections -= 1
            writer.transport.abort()

    @abstractmethod
    async def lead(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, ours: bool
    ) -> None:
        """Copy one direction, from the client if *ours*; raises EOFError at the end."""


@dataclass
class FrameRelay(Relay):
    """Knows the frames of its protocol, so that it can read and change them."""

    async def lead(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, ours: bool
    ) -> None:
        frames: asyncio.Queue[bytes] = asyncio.Queue()
        async with asyncio.TaskGroup() as both:
            both.create_task(self._read(reader, frames))
            both.create_task(self._write(writer, frames, self.asked if ours else self.answered))

    async def _read(self, reader: asyncio.StreamReader, frames: asyncio.Queue[bytes]) -> None:
        """Read on even while stalled, so that a disconnect is noticed."""
        while True:
            frames.put_nowait(await self.frame(reader))

    async def _write(
        self,
        writer: asyncio.StreamWriter,
        frames: asyncio.Queue[bytes],
        change: Callable[[bytes], bytes],
    ) -> None:
        while True:
            frame = change(await frames.get())
            await self._flowing.wait()
            writer.write(frame)
            await writer.drain()

    @abstractmethod
    async def frame(self, reader: asyncio.StreamReader) -> bytes:
        """The next one whole, header and all."""

    def asked(self, frame: bytes) -> bytes:
        """The client's frame as it is passed on to the server."""
        return frame

    def answered(self, frame: bytes) -> bytes:
        return frame
