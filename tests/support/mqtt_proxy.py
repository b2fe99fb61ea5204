"""Stands between a client and a real MQTT broker, to fail as networks and brokers do.

It reads MQTT's packets, so that it can redirect some of them to a topic that the broker forbids.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from support.relay import FrameRelay

OPEN, SHUT = b"/open/", b"/shut/"
"""In topics: what leads through, and what the broker's access list forbids."""


@dataclass
class MqttProxy(FrameRelay):
    """Its frames are packets."""

    refused: set[bytes] = field(default_factory=set)
    """Packets that hold one of these go to a forbidden topic."""
    after: Callable[[bytes], None] = lambda _: None
    """Called with each packet from a client, before it is passed on."""

    async def frame(self, reader: asyncio.StreamReader) -> bytes:
        return await read_packet(reader)

    def asked(self, frame: bytes) -> bytes:
        self.after(frame)
        if any(mark in frame for mark in self.refused):
            return frame.replace(OPEN, SHUT, 1)
        return frame


async def read_packet(reader: asyncio.StreamReader) -> bytes:
    """One whole packet of MQTT, header and all."""
    head = await reader.readexactly(2)
    while head[-1] & 0x80:
        head += await reader.readexactly(1)
    length = sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(head[1:]))
    return head + await reader.readexactly(length)


def mqtt_proxied(host: str, port: int) -> MqttProxy:
    return MqttProxy((host, port))
