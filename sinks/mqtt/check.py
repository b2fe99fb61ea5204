"""`seb check --connect`: the server accepts our connection. Nothing is published or taken."""

from dataclasses import replace

from bridge.plugins import Place
from sinks.mqtt.client import Client
from sinks.mqtt.connection import make_connector
from sinks.mqtt.delivery import OpenSink
from sinks.mqtt.settings import MqttSettings
from sinks.mqtt.source import PATIENCE, MqttApprovals, name_listener, subscribe


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


async def check_source(settings: MqttApprovals, place: Place) -> str:
    """The same for approvals: with an id of its own, and a session that ends with the check."""
    topic = place.fill(settings.topic)
    connector = make_connector(settings, f"{name_listener(settings, place)}-check", PATIENCE)
    client = Client(connector)
    try:
        await client.connect()
        await subscribe(client, connector, topic)
    finally:
        await client.close()
    return f"may read topic {topic} {settings.describe_connection()}"
