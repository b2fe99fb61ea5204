"""Stands between a client and a server, to fail as networks do: closed, cut, or silent forever."""

import asyncio
from dataclasses import dataclass, field

from support.relay import Relay


@dataclass
class TcpProxy(Relay):
    """Passes bytes, whatever they mean."""

    sent: int = 0
    """How many bytes came from clients, passed on or not."""
    received: bytearray = field(default_factory=bytearray)
    """What the server sent, for tests to inspect."""
    _era: int = 0

    def drop(self) -> None:
        """Make the current connections dead forever without closing them; new ones work."""
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
        await self._flowing.wait()  # while it is silent, a disconnect is not passed on
        if era != self._era and not ours:
            await asyncio.Event().wait()
        raise EOFError


def tcp_proxied(host: str, port: int) -> TcpProxy:
    return TcpProxy((host, port))
