"""Delivers a batch as messages, over UDP, TCP or TLS."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

from bridge.plugins import (
    CloudEvent,
    Format,
    Place,
    Rejected,
    Result,
    Send,
    Unavailable,
    open_format,
)
from sinks._limit import batch_limit
from sinks.syslog.binding import Style, frame
from sinks.syslog.connection import Connection, connect
from sinks.syslog.datagrams import Datagrams, aim
from sinks.syslog.errors import translated
from sinks.syslog.settings import SyslogSettings

_BREATH = 16
"""How many are written before other tasks get a turn."""


@asynccontextmanager
async def open_sink(settings: SyslogSettings, place: Place) -> AsyncGenerator[Send]:
    way = _datagrams if settings.to.scheme == "udp" else _stream
    async with way(settings, place) as send:
        yield send


@asynccontextmanager
async def _stream(settings: SyslogSettings, place: Place) -> AsyncGenerator[Send]:
    stream = Stream.begin(settings, place)
    try:
        async with translated(settings.to, stream.limit):
            await stream.enter()
        if not settings.keep_connected:
            await stream.leave()  # only a test: each batch has a connection of its own
        yield stream.send
        await stream.leave()
    finally:
        stream.abort()


@asynccontextmanager
async def _datagrams(settings: SyslogSettings, place: Place) -> AsyncGenerator[Send]:
    writer, limit = Writer.of(settings, place), batch_limit(settings)
    datagrams = await open_datagrams(settings)

    async def send(batch: Sequence[CloudEvent]) -> Sequence[Result]:
        written = await writer.write(batch)
        messages = [one for one in written if isinstance(one, bytes)]
        if messages:
            async with translated(settings.to, limit):
                await datagrams.deliver(messages)
        return _results(written)

    try:
        yield send
    finally:
        datagrams.abort()


async def open_datagrams(settings: SyslogSettings) -> Datagrams:
    """Raises `Unavailable` when the receiver's name cannot be resolved."""
    async with translated(settings.to, batch_limit(settings)):
        return await aim(settings.to)


@dataclass(frozen=True, slots=True)
class Writer:
    """CloudEvents as messages; framed, except for datagrams."""

    form: Format
    style: Style
    framing: str | None

    @classmethod
    def of(cls, settings: SyslogSettings, place: Place) -> Self:
        """Raises `Unavailable` while a placeholder has no value yet."""
        style = Style(
            facility=settings.facility,
            app_name=settings.app_name,
            largest=settings.largest,
            hostname=place.fill(settings.hostname) if settings.hostname else None,
            enterprise_id=settings.enterprise_id,
        )
        framing = None if settings.to.scheme == "udp" else settings.framing
        return cls(open_format(settings), style, framing)

    async def write(self, batch: Sequence[CloudEvent]) -> list[bytes | Rejected]:
        written: list[bytes | Rejected] = []
        for place, cloudevent in enumerate(batch):
            if place % _BREATH == 0:
                await asyncio.sleep(0)
            written.append(self._try(cloudevent))
        return written

    def _try(self, cloudevent: CloudEvent) -> bytes | Rejected:
        try:
            message = self.style.write(cloudevent, self.form.encode(cloudevent))
            return message if self.framing is None else frame(message, self.framing)
        except Rejected as error:
            return error


@dataclass(slots=True)
class Stream:
    """Over TCP or TLS. `limit` is for one batch, in seconds."""

    settings: SyslogSettings
    writer: Writer
    limit: float
    _connection: Connection | None = field(default=None)

    @classmethod
    def begin(cls, settings: SyslogSettings, place: Place) -> Self:
        return cls(settings, Writer.of(settings, place), batch_limit(settings))

    async def send(self, batch: Sequence[CloudEvent]) -> list[Result]:
        """Raises `Unavailable` when the receiver may lack some of it."""
        written = await self.writer.write(batch)
        data = b"".join(one for one in written if isinstance(one, bytes))
        if data:
            async with translated(self.settings.to, self.limit):
                await self._deliver(data)
        return _results(written)

    async def enter(self) -> Connection:
        """The current connection; a new one if there is none or the certificates changed."""
        known, tls = self._connection, self.settings.security
        try:
            context = tls.context() if tls else None
        except Unavailable:
            if known is None:
                raise
            return known  # half a rotation: the current connection still works
        if known is not None and known.context is context:
            return known
        await self.leave()
        made = self._connection = await connect(self.settings.to, context, self.limit)
        await made.admitted()
        return made

    async def _deliver(self, data: bytes) -> None:
        connection = await self.enter()
        await connection.deliver(data)
        if not self.settings.keep_connected:
            await connection.finish()
            await self.leave()

    async def leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await connection.leave()
            finally:
                connection.abort()

    def abort(self) -> None:
        if self._connection is not None:
            self._connection.abort()


def _results(written: Sequence[bytes | Rejected]) -> list[Result]:
    return [one if isinstance(one, Rejected) else None for one in written]
