"""`seb check --connect`: the receiver answers, as far as its protocol shows. Nothing is sent."""

from bridge.plugins import Place
from sinks.syslog.delivery import Stream, open_datagrams
from sinks.syslog.errors import translated
from sinks.syslog.settings import SyslogSettings


async def check_sink(settings: SyslogSettings, place: Place) -> str:
    """Return one sentence that says what works. Raises `Unavailable` as sending would."""
    if settings.to.scheme == "udp":
        datagrams = await open_datagrams(settings)
        datagrams.abort()
        return f"{settings.to.host} is {datagrams.peer}; UDP does not confirm anything"
    stream = Stream.begin(settings, place)
    try:
        async with translated(settings.to, stream.limit):
            connection = await stream.enter()
            how = f" over {connection.tls}" if connection.tls else ""
        await stream.leave()
    finally:
        stream.abort()
    return f"reached {settings.address}{how}; nothing was sent"
