"""Stands between a client and a real MQTT broker, to fail as networks and brokers do.

It reads MQTT's packets, so that it can lead some of them to a topic that the broker forbids.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

OPEN, SHUT = b"/open/", b"/shut/"
"""In topics: what leads through, and what the broker's access list forbids."""


@dataclass
class MqttProxy:
    """`port` is what clients connect to, whatever happens behind it."""

    broker: tuple[str, int]
    port: int = 0
    refused: set[bytes] = field(default_factory=set)
    """Packets that hold one of these go to a forbidden topic."""
    after: Callable[[bytes], None] = lambda _: None
    """Called with each packet from a client, before it is passed on."""
    _flowing: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    async def up(self) -> None:
        self._flowing.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """Hang up on everybody and listen no more."""
        assert self._server is not None
        self._server.close()
        await self.hang_up()

    async def hang_up(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stall(self) -> None:
        self._flowing.clear()

    def release(self) -> None:
        self._flowing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            there = await asyncio.open_connection(*self.broker)
            try:
                async with asyncio.TaskGroup() as both:
                    for source, target, change in (
                        (reader, there[1], self._asked),
                        (there[0], writer, bytes),
                    ):
                        packets: asyncio.Queue[bytes] = asyncio.Queue()
                        both.create_task(_read(source, packets))
                        both.create_task(self._write(target, packets, change))
            finally:
                there[1].transport.abort()
        except* (asyncio.CancelledError, OSError, EOFError):
            pass  # the end of a connection, by either side
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _write(
        self,
        writer: asyncio.StreamWriter,
        packets: asyncio.Queue[bytes],
        change: Callable[[bytes], bytes],
    ) -> None:
        while True:
            packet = change(await packets.get())
            await self._flowing.wait()
            writer.write(packet)
            await writer.drain()

    def _asked(self, packet: bytes) -> bytes:
        self.after(packet)
        if any(mark in packet for mark in self.refused):
            return packet.replace(OPEN, SHUT, 1)
        return packet


async def _read(reader: asyncio.StreamReader, packets: asyncio.Queue[bytes]) -> None:
    """On and on, also while stalled: so it is noticed when somebody hangs up."""
    while True:
        packets.put_nowait(await read_packet(reader))


async def read_packet(reader: asyncio.StreamReader) -> bytes:
    """One whole packet of MQTT, header and all."""
    head = await reader.readexactly(2)
    while head[-1] & 0x80:
        head += await reader.readexactly(1)
    length = sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(head[1:]))
    return head + await reader.readexactly(length)


@contextlib.asynccontextmanager
async def mqtt_proxied(host: str, port: int) -> AsyncIterator[MqttProxy]:
    proxy = MqttProxy((host, port))
    await proxy.up()
    try:
        yield proxy
    finally:
        await proxy.down()
