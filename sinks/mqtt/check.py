"""`seb check --connect`: the server accepts our connection. Nothing is published."""

from dataclasses import replace

from bridge.plugins import Place
from sinks.mqtt.delivery import OpenSink
from sinks.mqtt.settings import MqttSettings


async def check_sink(settings: MqttSettings, place: Place) -> str:
    """Return one sentence that says what works. Raises `Unavailable` as sending would.

    It uses a client id of its own: the bridge's id would disconnect a running bridge.
    """
    session = OpenSink.begin(settings, place)
    session = replace(session, client_id=f"{session.client_id}-check", presence=None)
    try:
        await session.connect()
    finally:
        await session.disconnect()
    topic = session.binding.topic_of("SUBJECT")
    return (
        f"connected {settings.describe_connection()}; nothing was published,"
        f" so permission for topic {topic} shows only with the first CloudEvent"
    )
