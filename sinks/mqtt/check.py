"""`seb check --connect`: the server lets us in; nothing is published."""

from dataclasses import replace

from bridge.plugins import Place
from sinks.mqtt.delivery import OpenSink
from sinks.mqtt.settings import MqttSettings


async def check_sink(settings: MqttSettings, place: Place) -> str:
    """One sentence of what was proved. Raises `Unavailable` as sending would.

    Under a client id of its own: the bridge's would end the connection of one that runs.
    """
    session = OpenSink.begin(settings, place)
    session = replace(session, client_id=f"{session.client_id}-check", presence=None)
    try:
        await session.connect()
    finally:
        await session.disconnect()
    topic = session.binding.topic_of("SUBJECT")
    return (
        f"was let in {settings.describe_connection()}; whether topic {topic} may be written,"
        " a server says only when something is published, and nothing was"
    )
