"""Stands between a sink and a real broker, to fail as networks and brokers do.

It speaks Kafka's frames, so that it can put its own address where the broker names itself.
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
    """Clients that were told of the broker come here again."""

    named: int = 0
    """The port that clients are told to go to next; its own unless set."""
    clients: set[str] = field(default_factory=set)
    produced: int = 0
    """How many bytes of produce requests came by."""
    refused: set[bytes] = field(default_factory=set)

    async def frame(self, reader: asyncio.StreamReader) -> bytes:
        head = await reader.readexactly(4)
        return head + await reader.readexactly(*struct.unpack(">i", head))

    def asked(self, frame: bytes) -> bytes:
        """What is to be refused is damaged, so that the broker refuses the batch that holds it."""
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
