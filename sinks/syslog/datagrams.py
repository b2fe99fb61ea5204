"""Messages over UDP: sent, and almost never confirmed."""

import asyncio
from dataclasses import dataclass
from typing import Any

from sinks.syslog.settings import Address

_PACE, _PAUSE = 32, 0.002
"""Pause after this many: a receiver's buffer has space for a few hundred and drops the rest."""
_ECHO = 0.05
"""How long to wait for the report that the port is closed."""


class _Refusals(asyncio.DatagramProtocol):
    """A machine without a receiver reports a closed port, unless a firewall blocks that."""

    def __init__(self) -> None:
        self.refused: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    def error_received(self, exc: Exception) -> None:
        if not self.refused.done():
            self.refused.set_result(exc)


@dataclass(frozen=True, slots=True)
class Datagrams:
    """A socket that is connected to its receiver. Its methods raise OSError."""

    transport: asyncio.DatagramTransport
    refusals: _Refusals

    @property
    def peer(self) -> Any:
        return self.transport.get_extra_info("peername")[0]

    async def deliver(self, messages: list[bytes]) -> None:
        for number, message in enumerate(messages):
            if number % _PACE == _PACE - 1:
                await asyncio.sleep(_PAUSE)
            self.transport.sendto(message)
        await asyncio.wait({self.refusals.refused}, timeout=_ECHO)
        if self.refusals.refused.done():
            raise self.refusals.refused.result()

    def abort(self) -> None:
        self.transport.abort()


async def aim(address: Address) -> Datagrams:
    """Raises OSError when the name cannot be resolved."""
    loop = asyncio.get_running_loop()
    transport, refusals = await loop.create_datagram_endpoint(
        _Refusals, remote_addr=(address.host, address.port)
    )
    return Datagrams(transport, refusals)
