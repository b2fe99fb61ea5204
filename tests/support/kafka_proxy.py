"""Stands between a sink and a real broker, to fail as networks and brokers do.

It understands Kafka's frames, so that it can replace the broker's address by its own.
"""

import asyncio
import struct
from dataclasses import dataclass, field

from support.relay import FrameRelay

PRODUCE = 0
_HEAD = struct.Struct(">ihhih")
"""Of a request: its size, what it asks for and in which version, a number, the length of a name."""


@dataclass
class Proxy(FrameRelay):
    """A proxy that clients come back to after they ask for the broker's address."""

    named: int = 0
    """The port that clients are sent to next; its own by default."""
    clients: set[str] = field(default_factory=set)
    produced: int = 0
    """How many bytes of produce requests came by."""
    refused: set[bytes] = field(default_factory=set)

    async def frame(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readexactly(4)
        return head + await reader.readexactly(*struct.unpack(">i", head))

    def asked(self, frame: bytes) -> bytes:
        """Damage what must be refused, so that the broker refuses its batch."""
        _, api, _, _, length = _HEAD.unpack_from(frame)
        self.clients.add(frame[_HEAD.size : _HEAD.size + length].decode())
        if api != PRODUCE:
            return frame
        self.produced += len(frame)
        for mark in self.refused:
            frame = frame.replace(mark, mark[::-1])
        return frame

    def answered(self, frame: bytes) -> bytes:
        return frame.replace(_named(self.server[1]), _named(self.named or self.port))


def _named(port: int) -> bytes:
    host = b"127.0.0.1"
    return struct.pack(">h", len(host)) + host + struct.pack(">i", port)


def proxied(bootstrap: str) -> Proxy:
    host, _, port = bootstrap.rpartition(":")
    return Proxy((host, int(port)))
