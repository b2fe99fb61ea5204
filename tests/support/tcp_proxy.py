"""Stands between a client and a server, to fail as networks do: closed, cut, or silent for ever."""

import asyncio
from dataclasses import dataclass, field

from support.relay import Relay


@dataclass
class TcpProxy(Relay):
    """Passes bytes, whatever they mean."""

    sent: int = 0
    """How many bytes came from clients, whether they were let through or not."""
    received: bytearray = field(default_factory=bytearray)
    """What the server said, for those who want to look."""
    _era: int = 0

    def drop(self) -> None:
        """The connections of this moment are dead for ever, and neither side is told; new ones live."""
        self._era += 1

    async def lead(
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


def tcp_proxied(host: str, port: int) -> TcpProxy:
    return TcpProxy((host, port))
