"""CloudEvents as Kafka records, acknowledged by all replicas in sync; with aiokafka.

Read `settings`, then `sending` (a batch), `producing` and `connecting` (bounded and cancellable
where aiokafka is not), `errors` (what went wrong, in our words). `binding` and `topics` are pure.
Approvals come the other way: `listening`, then `reading`, `attending` and `consuming`.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from bridge.plugins import ApprovalPlugin, Place, Send, SinkPlugin, open_format
from sinks.kafka.check import check_topics
from sinks.kafka.connection import Door, log_in
from sinks.kafka.delivery import Session
from sinks.kafka.settings import Connection, KafkaSettings, Topics
from sinks.kafka.source import KafkaApprovals, listen

__all__ = ["Connection", "KafkaApprovals", "KafkaSettings", "approvals", "sink"]

_OF_TIMEOUT = 0.9
"""What a batch may use of `retry.timeout`, so that results come before the bridge stops waiting."""
_OF_LIMIT = 0.8


@asynccontextmanager
async def _open(settings: KafkaSettings, place: Place) -> AsyncGenerator[Send]:
    topics = Topics.fill(settings.topic, place)
    form = open_format(settings) if settings.format else None
    session = Session(settings, topics, _door(settings, place), _limit(settings), form)
    try:
        await session.connect()
        yield session.send
    finally:
        await session.disconnect()


async def _check(settings: KafkaSettings, place: Place) -> str:
    topics = Topics.fill(settings.topic, place).names
    how = settings.describe_security("authenticated by")
    return await check_topics(_door(settings, place), topics, how, _limit(settings))


def _limit(settings: KafkaSettings) -> float:
    return settings.retry.timeout * _OF_TIMEOUT


def _door(settings: KafkaSettings, place: Place) -> Door:
    return Door(
        servers=settings.servers,
        client_id=settings.name_client(place, "sink"),
        patience=_limit(settings) * _OF_LIMIT,
        login=log_in(settings),
    )


sink = SinkPlugin(settings=KafkaSettings, open=_open, check=_check)
approvals = ApprovalPlugin(settings=KafkaApprovals, open=listen)
