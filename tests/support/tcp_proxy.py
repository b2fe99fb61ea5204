"""Stands between a client and a server, to fail as networks do: closed, cut, or silent for ever."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field


@dataclass
class TcpProxy:
    """`host` and `port` are what clients connect to, whatever happens behind it."""

    server: tuple[str, int]
    host: str = "127.0.0.1"
    port: int = 0
    connections: int = 0
    sent: int = 0
    """How many bytes came from clients, whether they were let through or not."""
    received: bytearray = field(default_factory=bytearray)
    """What the server said, for those who want to look."""
    _era: int = 0
    _flowing: asyncio.Event = field(default_factory=asyncio.Event)
    _listening: asyncio.Server | None = None
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    async def up(self) -> None:
        self._flowing.set()
        self._listening = await asyncio.start_server(self._serve, self.host, self.port)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Hang up on everybody and listen no more."""
        if self._listening is not None:
            self._listening.close()
        await self.hang_up()

    async def hang_up(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stall(self) -> None:
        """From now on nothing gets through in either way, and nobody is told: half open."""
        self._flowing.clear()

    def release(self) -> None:
        self._flowing.set()

    def drop(self) -> None:
        """The connections of this moment are dead for ever, and neither side is told; new ones live."""
        self._era += 1

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            there = await asyncio.open_connection(*self.server)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._pass(reader, there[1], ours=True))
                    both.create_task(self._pass(there[0], writer, ours=False))
            finally:
                there[1].transport.abort()
        except* (asyncio.CancelledError, OSError, EOFError):
            pass  # the end of a connection, by either side
        finally:
            self._tasks.discard(task)
            self.connections -= 1
            writer.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, ours: bool
    ) -> None:
        era = self._era
        while chunk := await reader.read(65536):
            if ours:
                self.sent += len(chunk)
            else:
                self.received += chunk
            await self._flowing.wait()
            if era == self._era:
                writer.write(chunk)
                await writer.drain()
        await self._flowing.wait()  # while it is silent, nobody hears that somebody left
        if era != self._era and not ours:
            await asyncio.Event().wait()
        raise EOFError


@contextlib.asynccontextmanager
async def tcp_proxied(host: str, port: int) -> AsyncIterator[TcpProxy]:
    proxy = TcpProxy((host, port))
    await proxy.up()
    try:
        yield proxy
    finally:
        await proxy.down()
