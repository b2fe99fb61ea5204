"""Approvals from a Kafka topic: which, and how the bridge comes to all of its partitions."""

import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from bridge.plugins import ApprovalSettings, Delivery, Listening, Place, SinkSettings
from sinks.kafka.connection import Door, log_in
from sinks.kafka.consumer import remembered
from sinks.kafka.reader import Reader
from sinks.kafka.settings import Connection, KafkaSettings, Topics, validate_topic
from sinks.kafka.subscription import PATIENCE, Seat

_began: dict[tuple[str, str], float] = {}
"""When this process first listened: a partition that said nothing yet has no other beginning."""
_ANYWHERE = Place({name: f"some-{name}" for name in Place.NAMES})


class KafkaApprovals(Connection, ApprovalSettings):
    """Which topic, and whether its records are shared with others."""

    SHARED: ClassVar[tuple[str, ...]] = tuple(Connection.model_fields)

    type: Literal["kafka"]
    topic: str = Field(description="may hold {vm_name}, {location}, …")
    group: str | None = Field(
        None,
        min_length=1,
        max_length=255,
        description="a consumer group that shares the records; else every bridge reads all of them",
    )

    @field_validator("topic")
    @classmethod
    def _legal_topic(cls, topic: str) -> str:
        return validate_topic(Place.validate(topic))

    @field_validator("group")
    @classmethod
    def _legal_group(cls, group: str | None) -> str | None:
        return group and Place.validate(group)

    def describe(self) -> str:
        servers = ", ".join(self.bootstrap_servers)
        shared = f", shared within group {self.group}" if self.group else ""
        return f"come from Kafka topic {self.topic} at {servers} {self.describe_security()}{shared}"

    def overlaps(self, sink: SinkSettings) -> bool:
        """By name alone: who can tell whether two lists of brokers are of one cluster."""
        if not isinstance(sink, KafkaSettings):
            return False
        return _topic(self, _ANYWHERE) in Topics.fill(sink.topic, _ANYWHERE).names


@asynccontextmanager
async def listen(
    settings: KafkaApprovals, place: Place, listening: Listening
) -> AsyncGenerator[AsyncIterator[Delivery]]:
    """Connected when entered; raises `Unavailable` when that cannot be."""
    door = Door(
        servers=settings.servers,
        client_id=settings.name_client(replace(place, sink=listening.name), "approvals"),
        patience=PATIENCE,
        login=log_in(settings),
    )
    topic = _topic(settings, place)
    seat = Seat(
        settings=settings,
        topic=topic,
        group=place.fill(settings.group) if settings.group else None,
        door=door,
        since=_began.setdefault((listening.name, topic), time.time()) - listening.lookback,
        places=remembered(listening.checkpoints, topic),
    )
    try:
        await seat.take()
        async with aclosing(Reader(seat, listening).deliveries()) as deliveries:
            yield deliveries
    finally:
        await seat.leave()


def _topic(settings: KafkaApprovals, place: Place) -> str:
    return Topics.fill(settings.topic, place).names[0]
