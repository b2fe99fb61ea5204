"""A syslog receiver inside the test, for what cannot be asked of rsyslog: stalls, resets, manners."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass, field


@dataclass
class Receiver:
    """Reads octet-counted messages and hangs up when the sender does, unless `closes` is False."""

    host: str = "127.0.0.1"
    context: ssl.SSLContext | None = None
    closes: bool = True
    port: int = 0
    messages: list[bytes] = field(default_factory=list)
    connections: int = 0
    """How many there ever were."""
    _flowing: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tls' if self.context else 'tcp'}://{host}:{self.port}"

    async def up(self) -> None:
        self._flowing.set()
        self._server = await asyncio.start_server(
            self._serve, self.host, self.port, ssl=self.context, limit=2**20
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        if self._server is not None:
            self._server.close()
        await self.hang_up()

    async def hang_up(self, *, reset: bool = False) -> None:
        """In order, or as a machine does whose program died with something unread."""
        for writer in self._writers:
            sock = writer.get_extra_info("socket")
            if reset and sock.fileno() >= 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def met(self, connections: int) -> None:
        """Return when there were so many."""
        async with asyncio.timeout(10):
            while self.connections < connections:
                await asyncio.sleep(0.001)

    async def alone(self) -> None:
        """Return when nobody is connected."""
        async with asyncio.timeout(10):
            while self._tasks:
                await asyncio.sleep(0.001)

    def stall(self) -> None:
        self._flowing.clear()

    def release(self) -> None:
        self._flowing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        self.connections += 1
        try:
            while await self._message(reader):
                pass
            if not self.closes:
                await asyncio.Event().wait()
            writer.close()
        except (asyncio.CancelledError, OSError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)

    async def _message(self, reader: asyncio.StreamReader) -> bool:
        try:
            await self._flowing.wait()
            length = int(await reader.readuntil(b" "))
            self.messages.append(await reader.readexactly(length))
        except asyncio.IncompleteReadError:
            return False
        return True


@contextlib.asynccontextmanager
async def receiving(
    host: str = "127.0.0.1", context: ssl.SSLContext | None = None, *, closes: bool = True
) -> AsyncIterator[Receiver]:
    receiver = Receiver(host, context, closes)
    await receiver.up()
    try:
        yield receiver
    finally:
        await receiver.down()
