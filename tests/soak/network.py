"""Proxies that a soak puts before its brokers: they delay, fall silent, cut, halve and reset."""

import asyncio
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from support.kafka_proxy import Proxy
from support.tcp_proxy import TcpProxy


@dataclass
class Mood:
    """How the proxies of one place behave at the moment."""

    lag: float = 0.0
    halves: bool = False

    async def pass_on(self, writer: asyncio.StreamWriter, chunk: bytes) -> None:
        """Write it; raises EOFError after half of it, if that is the mood."""
        if self.lag:
            await asyncio.sleep(self.lag)
        whole = not self.halves or len(chunk) < 2
        writer.write(chunk if whole else chunk[: len(chunk) // 2])
        await writer.drain()
        if not whole:
            raise EOFError


@dataclass
class MoodyProxy(TcpProxy):
    """Passes bytes of any protocol."""

    mood: Mood = field(default_factory=Mood)

    async def lead(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, ours: bool
    ) -> None:
        era = self._era
        while chunk := await reader.read(65536):
            await self._flowing.wait()
            if era == self._era:
                await self.mood.pass_on(writer, chunk)
        await self._flowing.wait()
        if era != self._era and not ours:
            await asyncio.Event().wait()
        raise EOFError


@dataclass
class MoodyKafka(Proxy):
    """Stands before one node, and gives clients the proxies' addresses in place of the nodes'."""

    mood: Mood = field(default_factory=Mood)
    ports: Mapping[int, int] = field(default_factory=dict)
    """The proxy's port for each node's."""
    _era: int = 0

    def drop(self) -> None:
        self._era += 1

    def answered(self, frame: bytes) -> bytes:
        for real, ours in self.ports.items():
            frame = frame.replace(_named(real), _named(ours))
        return frame

    async def _write(
        self,
        writer: asyncio.StreamWriter,
        frames: asyncio.Queue[bytes],
        change: Callable[[bytes], bytes],
    ) -> None:
        era = self._era
        while True:
            frame = change(await frames.get())
            await self._flowing.wait()
            if era == self._era:
                await self.mood.pass_on(writer, frame)


def _named(port: int) -> bytes:
    host = b"127.0.0.1"
    return struct.pack(">h", len(host)) + host + struct.pack(">i", port)


@dataclass
class Place:
    """All proxies before one kind of server."""

    proxies: list[MoodyProxy] | list[MoodyKafka]

    async def up(self) -> None:
        for proxy in self.proxies:
            await proxy.up()

    async def down(self) -> None:
        for proxy in self.proxies:
            await proxy.down()

    async def reset(self) -> None:
        for proxy in self.proxies:
            await proxy.hang_up()

    def drop(self) -> None:
        for proxy in self.proxies:
            proxy.drop()

    def stall(self) -> None:
        for proxy in self.proxies:
            proxy.stall()

    def release(self) -> None:
        for proxy in self.proxies:
            proxy.release()

    def set(self, *, lag: float = 0.0, halves: bool = False) -> None:
        for proxy in self.proxies:
            proxy.mood.lag, proxy.mood.halves = lag, halves
