"""Where a bridge sits in a Kafka topic, as far as no broker is needed: time, errors, rotation."""

import asyncio
from pathlib import Path

import pytest
from aiokafka import errors

from bridge.plugins import Unavailable
from sinks.kafka import KafkaApprovals, subscription
from sinks.kafka.connection import Connector, log_in
from sinks.kafka.consumer import Progress
from sinks.kafka.subscription import Subscription


class NoNews:
    """A consumer that knows of two partitions, and is asked nothing else."""

    def partitions_for_topic(self, _topic: str) -> set[int]:
        return {0, 1}


def subscribed(**keys) -> Subscription:
    settings = KafkaApprovals.model_validate(
        {"type": "kafka", "bootstrap_servers": ["127.0.0.1:9092"], "topic": "approvals"}
        | {"trust": "transport"}
        | keys
    )
    connector = Connector(settings.servers, "me", 1.0, log_in(settings))
    made = Subscription(settings, "approvals", connector, 0.0, {}, consumer=NoNews())
    made.read = {0: Progress(7), 1: Progress(0)}
    return made


async def test_brokers_that_do_not_answer_are_not_waited_for(monkeypatch):
    monkeypatch.setattr(subscription, "LIMIT", 0.01)
    with pytest.raises(Unavailable, match=r"^127\.0\.0\.1:9092: no answer within 0\.01 s$"):
        await subscribed().bounded(asyncio.sleep(60))


async def test_a_refusal_of_the_broker_names_the_topic():
    async def refused() -> None:
        raise errors.TopicAuthorizationFailedError

    with pytest.raises(Unavailable, match="does not allow this client to read topic approvals"):
        await subscribed().bounded(refused())


async def test_half_a_rotation_changes_nothing(tmp_path: Path):
    password = tmp_path / "password"
    password.write_text("one")
    sasl = {"mechanism": "PLAIN", "username": "ann", "password": {"file": str(password)}}
    made = subscribed(sasl=sasl)
    before = made.connector
    password.unlink()
    await made.renew()
    assert made.connector is before
    assert made.read == {0: Progress(7), 1: Progress(0)}
