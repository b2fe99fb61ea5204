"""Approvals from an MQTT topic: which, and how long the server keeps them for this bridge."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from bridge.plugins import (
    ApprovalSettings,
    Delivery,
    Duration,
    Listening,
    Place,
    SinkSettings,
    Unavailable,
)
from sinks.mqtt.connection import find_door
from sinks.mqtt.settings import ClientId, Connection, MqttSettings, name_client
from sinks.mqtt.subscription import Seat, unshared
from sinks.mqtt.topics import may_meet, validate_filter

PATIENCE = 10.0
"""For being let in, and for the answer to our subscription, in seconds."""
_SHARED = re.compile(r"\$share/[^/+#]+/.+")


class MqttApprovals(Connection, ApprovalSettings):
    """Which topic, and how long approvals wait there for a bridge that is away."""

    SHARED: ClassVar[tuple[str, ...]] = tuple(Connection.model_fields)

    type: Literal["mqtt"]
    topic: str = Field(description="may hold + and #, {vm_name}, {location}, …")
    client_id: ClientId = None
    session_expiry: Duration = Field(
        86400.0,
        ge=1,
        le=4294967294,
        description="how long the server keeps approvals while the bridge is away; MQTT 5",
    )

    @field_validator("topic")
    @classmethod
    def _legal_topic(cls, topic: str) -> str:
        if topic.startswith("$share") and not _SHARED.fullmatch(topic):
            raise ValueError(f"{topic!r} is not a shared topic; write it as $share/GROUP/TOPIC")
        validate_filter(unshared(topic))
        return Place.validate(topic)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.version != "5" and "session_expiry" in self.model_fields_set:
            raise ValueError("session_expiry needs version: 5; with 3.1.1 the server decides")
        return self

    def describe(self) -> str:
        return f"come from MQTT topic {self.topic} {self.describe_connection()}"

    def overlaps(self, sink: SinkSettings) -> bool:
        """By topics alone: who can tell whether two names are of one server."""
        if not isinstance(sink, MqttSettings):
            return False
        published = (sink.topic, sink.birth_topic)
        return any(may_meet(unshared(self.topic), each) for each in published if each)


@asynccontextmanager
async def listen(
    settings: MqttApprovals, place: Place, listening: Listening
) -> AsyncGenerator[AsyncIterator[Delivery]]:
    """Subscribed when entered; raises `Unavailable` when that cannot be."""
    client_id = _client_id(settings, replace(place, sink=listening.name))
    door = find_door(settings, client_id, PATIENCE)
    signed = settings.trust == "signed"
    seat = Seat(door, place.fill(settings.topic), int(settings.session_expiry), signed=signed)
    try:
        await seat.take()
        async with aclosing(seat.deliveries(listening)) as deliveries:
            yield deliveries
    finally:
        await seat.leave()


def _client_id(settings: MqttApprovals, place: Place) -> str:
    """The server keeps our session by it, so a makeshift one would leave approvals behind."""
    if settings.client_id is None and not place.names.get("vm_id"):
        why = "this VM's id, by which the server keeps approvals, is not known yet"
        raise Unavailable(f"{why}; with a client_id it is not needed")
    return name_client(settings.client_id, place, "approvals")
