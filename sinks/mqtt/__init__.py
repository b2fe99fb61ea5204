"""CloudEvents as MQTT messages, acknowledged by the server; with paho.

Read `settings`, then `sending` (a batch), `client` (one connection, for asyncio), `network` (paho
and its thread), `errors` (what went wrong, in our words). `binding`, `presence` and `topics` are
pure. Approvals come the other way: `listening`, then `attending` and `reading`, and `arriving`,
which is pure.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from bridge.plugins import ApprovalPlugin, Place, Send, SinkPlugin, open_format
from sinks.mqtt.binding import Binding, Presence
from sinks.mqtt.delivery import Session
from sinks.mqtt.settings import Connection, MqttSettings, name_client
from sinks.mqtt.source import MqttApprovals, listen

__all__ = ["Connection", "MqttApprovals", "MqttSettings", "approvals", "sink"]

_OF_TIMEOUT = 0.9
"""What a batch may use of `retry.timeout`, so that results come before the bridge stops waiting."""


@asynccontextmanager
async def _open(settings: MqttSettings, place: Place) -> AsyncGenerator[Send]:
    session = _session(settings, place)
    try:
        await session.connect()
        yield session.send
    finally:
        await session.disconnect()


async def _check(settings: MqttSettings, place: Place) -> str:
    """Under a client id of its own: the bridge's would end the connection of one that runs."""
    session = _session(settings, place)
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


def _session(settings: MqttSettings, place: Place) -> Session:
    client_id = name_client(settings.client_id, place, "sink")
    response = settings.response_topic
    binding = Binding(
        settings,
        place,
        format=open_format(settings) if settings.format else None,
        response_topic=place.fill(response) if response else None,
    )
    binding.topic_of("SUBJECT")  # a name that is not known yet keeps us out, not each CloudEvent
    return Session(
        settings,
        binding,
        client_id,
        Presence.of(settings, place, client_id),
        settings.retry.timeout * _OF_TIMEOUT,
        place.lost,
    )


sink = SinkPlugin(settings=MqttSettings, open=_open, check=_check)
approvals = ApprovalPlugin(settings=MqttApprovals, open=listen)
