"""An MQTT server that answers what the test says, byte by byte, as no real server would."""

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from support.mqtt_proxy import read_packet

CONNECT, PUBLISH, PINGREQ, DISCONNECT = 0x10, 0x30, 0xC0, 0xE0


@dataclass(frozen=True)
class Published:
    """A PUBLISH as it was on the wire; `size` is that of the whole packet."""

    topic: str
    payload: bytes
    number: int
    retain: bool
    size: int


def connack(code: int = 0, properties: bytes = b"") -> bytes:
    body = bytes([0, code, len(properties)]) + properties
    return bytes([0x20, len(body)]) + body


def puback(number: int, code: int = 0, said: str = "") -> bytes:
    words = b"\x1f" + struct.pack("!H", len(said)) + said.encode() if said else b""
    body = struct.pack("!HBB", number, code, len(words)) + words
    return bytes([0x40, len(body)]) + body


def goodbye(code: int) -> bytes:
    return bytes([0xE0, 2, code, 0])


def receive_maximum(count: int) -> bytes:
    return b"\x21" + struct.pack("!H", count)


def maximum_packet(size: int) -> bytes:
    return b"\x27" + struct.pack("!I", size)


def maximum_qos(qos: int) -> bytes:
    return bytes([0x24, qos])


def retain_available(yes: int) -> bytes:
    return bytes([0x25, yes])


@dataclass
class ScriptedMqtt:
    """`answer` says what is sent for a PUBLISH; `greeting` is sent for a CONNECT, None: nothing."""

    greeting: bytes | None = field(default_factory=connack)
    answer: Callable[[Published], bytes] = lambda published: puback(published.number)
    version: str = "5"
    port: int = 0
    published: list[Published] = field(default_factory=list)
    connects: list[bytes] = field(default_factory=list)
    packets: list[int] = field(default_factory=list)
    hold: int = 0
    """So many acknowledgments are kept back until one more message cannot be expected."""
    most_waiting: int = 0
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            await self._talk(reader, writer)
        self._tasks.discard(task)
        writer.transport.abort()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting: list[Published] = []
        while True:
            try:
                async with asyncio.timeout(0.02 if waiting else None):
                    packet = await read_packet(reader)
            except TimeoutError:
                writer.write(self.answer(waiting.pop(0)))
                continue
            self.packets.append(packet[0] & 0xF0)
            if packet[0] & 0xF0 == CONNECT:
                self.connects.append(packet)
                writer.write(self.greeting or b"")
            if packet[0] & 0xF0 == PUBLISH:
                self.published.append(self._parse(packet))
                waiting.append(self.published[-1])
                self.most_waiting = max(self.most_waiting, len(waiting))
            while len(waiting) > self.hold:
                writer.write(self.answer(waiting.pop(0)))

    def _parse(self, packet: bytes) -> Published:
        at = 2
        while packet[at - 1] & 0x80:
            at += 1
        (length,) = struct.unpack_from("!H", packet, at)
        topic = packet[at + 2 : at + 2 + length].decode()
        at += 2 + length
        number = 0
        if packet[0] & 0x06:
            (number,) = struct.unpack_from("!H", packet, at)
            at += 2
        if self.version == "5":
            length, shift = 0, 0
            while True:
                length |= (packet[at] & 0x7F) << shift
                at, shift = at + 1, shift + 7
                if not packet[at - 1] & 0x80:
                    break
            at += length
        return Published(topic, packet[at:], number, bool(packet[0] & 1), len(packet))

    async def hang_up(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def scripted_mqtt(**script) -> AsyncIterator[ScriptedMqtt]:
    server = ScriptedMqtt(**script)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await server.hang_up()
