"""A syslog receiver inside the test, for what rsyslog cannot do on request: stalls and resets."""

import asyncio
import socket
import ssl
import struct
from dataclasses import dataclass, field

from support.relay import Wire


@dataclass
class Receiver(Wire):
    """Reads octet-counted messages and closes when the sender does, unless `closes` is False."""

    context: ssl.SSLContext | None = None
    closes: bool = True
    messages: list[bytes] = field(default_factory=list)
    connections: int = 0
    """How many there ever were."""
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def address(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'tls' if self.context else 'tcp'}://{host}:{self.port}"

    async def listen(self) -> asyncio.Server:
        return await asyncio.start_server(
            self.serve, self.host, self.port, ssl=self.context, limit=2**20
        )

    async def hang_up(self, *, reset: bool = False) -> None:
        """Close in order, or reset as a machine does whose program died with unread data."""
        for writer in self._writers:
            sock = writer.get_extra_info("socket")
            if reset and sock.fileno() >= 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        await super().hang_up()

    async def met(self, connections: int) -> None:
        """Return when there were so many."""
        async with asyncio.timeout(10):
            while self.connections < connections:
                await asyncio.sleep(0.001)

    async def alone(self) -> None:
        """Return when no client is connected."""
        async with asyncio.timeout(10):
            while self._tasks:
                await asyncio.sleep(0.001)

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self.connections += 1
        try:
            while await self._message(reader):
                pass
            if not self.closes:
                await asyncio.Event().wait()
            writer.close()
        finally:
            self._writers.discard(writer)

    async def _message(self, reader: asyncio.StreamReader) -> bool:
        try:
            await self._flowing.wait()
            length = int(await reader.readuntil(b" "))
            self.messages.append(await reader.readexactly(length))
        except asyncio.IncompleteReadError:
            return False
        return True


def receiving(
    host: str = "127.0.0.1", context: ssl.SSLContext | None = None, *, closes: bool = True
) -> Receiver:
    return Receiver(context, closes, host=host)
