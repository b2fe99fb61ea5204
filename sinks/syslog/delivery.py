"""A batch, written as messages and delivered over what the address names."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bridge.plugins import CloudEvent, Format, Rejected, Result, Unavailable
from sinks.syslog.binding import Style, frame
from sinks.syslog.connection import Connection, connect, why
from sinks.syslog.datagrams import Datagrams
from sinks.syslog.settings import Address, SyslogSettings

_BREATH = 16
"""So many are written before others get their turn."""


@dataclass(frozen=True, slots=True)
class Writer:
    """CloudEvents as messages, framed or, for datagrams, not."""

    form: Format
    style: Style
    framing: str | None

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

    async def send(self, batch: Sequence[CloudEvent]) -> list[Result]:
        """Raises `Unavailable` when the receiver may not have all of it."""
        written = await self.writer.write(batch)
        data = b"".join(one for one in written if isinstance(one, bytes))
        if data:
            async with translated(self.settings.to, self.limit):
                await self._deliver(data)
        return results(written)

    async def enter(self) -> Connection:
        """The connection that there is; a new one without any, or when certificates changed."""
        known, tls = self._connection, self.settings.security
        try:
            context = tls.context() if tls else None
        except Unavailable:
            if known is None:
                raise
            return known  # half a rotation: what we have still works
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


async def send_datagrams(
    to: Address, datagrams: Datagrams, writer: Writer, batch: Sequence[CloudEvent], limit: float
) -> list[Result]:
    written = await writer.write(batch)
    messages = [one for one in written if isinstance(one, bytes)]
    if messages:
        async with translated(to, limit):
            await datagrams.deliver(messages)
    return results(written)


def results(written: Sequence[bytes | Rejected]) -> list[Result]:
    return [one if isinstance(one, Rejected) else None for one in written]


@asynccontextmanager
async def translated(to: Address, limit: float) -> AsyncGenerator[None]:
    """What takes too long or fails is `Unavailable`, with the receiver's address."""
    try:
        async with asyncio.timeout(limit):
            yield
    except TimeoutError:
        raise Unavailable(f"{to}: it did not take everything within {limit:g} s") from None
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"{to}: {why(error, tls=to.scheme == 'tls')}") from None
