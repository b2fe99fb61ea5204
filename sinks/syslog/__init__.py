"""CloudEvents as syslog messages (RFC 5424) over UDP, TCP or TLS, their text in any format.

Read `settings`, then `message` (pure: header, structured data, frames), `sending` (a batch),
`connection` (what can be known of a protocol without acknowledgements) and `datagrams`.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from bridge.plugins import CloudEvent, Place, Result, Send, SinkPlugin, open_format
from sinks.syslog.binding import Style
from sinks.syslog.datagrams import Datagrams, aim
from sinks.syslog.delivery import Stream, Writer, send_datagrams, translated
from sinks.syslog.settings import SyslogSettings

__all__ = ["SyslogSettings", "sink"]

_OF_TIMEOUT = 0.9
"""What a batch may use of `retry.timeout`, so that our words come before the bridge's."""


@asynccontextmanager
async def _open(settings: SyslogSettings, place: Place) -> AsyncGenerator[Send]:
    way = _datagrams if settings.to.scheme == "udp" else _stream
    async with way(settings, place) as send:
        yield send


@asynccontextmanager
async def _stream(settings: SyslogSettings, place: Place) -> AsyncGenerator[Send]:
    stream = Stream(settings, _writer(settings, place), _limit(settings))
    try:
        async with translated(settings.to, stream.limit):
            await stream.enter()
        if not settings.keep_connected:
            await stream.leave()  # it was there; each batch has a connection of its own
        yield stream.send
        await stream.leave()
    finally:
        stream.abort()


@asynccontextmanager
async def _datagrams(settings: SyslogSettings, place: Place) -> AsyncGenerator[Send]:
    writer, limit = _writer(settings, place), _limit(settings)
    datagrams = await _aim(settings)

    async def send(batch: Sequence[CloudEvent]) -> Sequence[Result]:
        return await send_datagrams(settings.to, datagrams, writer, batch, limit)

    try:
        yield send
    finally:
        datagrams.abort()


async def _check(settings: SyslogSettings, place: Place) -> str:
    if settings.to.scheme == "udp":
        datagrams = await _aim(settings)
        datagrams.abort()
        return f"{settings.to.host} is {datagrams.peer}; UDP does not tell whether anybody listens"
    stream = Stream(settings, _writer(settings, place), _limit(settings))
    try:
        async with translated(settings.to, stream.limit):
            connection = await stream.enter()
            how = f" over {connection.tls}" if connection.tls else ""
        await stream.leave()
    finally:
        stream.abort()
    return f"reached {settings.address}{how}; nothing was sent"


async def _aim(settings: SyslogSettings) -> Datagrams:
    async with translated(settings.to, _limit(settings)):
        return await aim(settings.to)


def _limit(settings: SyslogSettings) -> float:
    return settings.retry.timeout * _OF_TIMEOUT


def _writer(settings: SyslogSettings, place: Place) -> Writer:
    style = Style(
        facility=settings.facility,
        app_name=settings.app_name,
        largest=settings.largest,
        hostname=place.fill(settings.hostname) if settings.hostname else None,
        enterprise_id=settings.enterprise_id,
        bom=settings.bom,
    )
    framing = None if settings.to.scheme == "udp" else settings.framing
    return Writer(open_format(settings), style, framing)


sink = SinkPlugin(settings=SyslogSettings, open=_open, check=_check)
