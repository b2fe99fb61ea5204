"""The fixtures that give tests their Kafka, and the time that starting it takes."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from support.kafka_broker import Broker, Cluster

PATIENCE = 180
FIXTURES = {"kafka", "lone_kafka", "kafka_cluster"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first test waits for the start, so all tests that use Kafka get more time."""
    for item in items:
        if FIXTURES & set(getattr(item, "fixturenames", ())) and not item.get_closest_marker(
            "timeout"
        ):
            item.add_marker(pytest.mark.timeout(PATIENCE))


@pytest.fixture(scope="session")
def session_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Broker"]:
    from support.kafka_broker import shared_broker  # noqa: PLC0415  only Kafka's tests load its clients

    own = tmp_path_factory.getbasetemp()
    with shared_broker(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) as broker:
        yield broker


@pytest.fixture
def kafka(session_broker: "Broker") -> "Broker":
    """The broker that all tests share: take topics and users of your own, and leave it running."""
    print(f"Kafka: {session_broker.kind}, log: {session_broker.log}")
    return session_broker


@pytest.fixture
async def lone_kafka(tmp_path: Path) -> AsyncIterator["Cluster"]:
    """One node for this test alone, to kill and restart."""
    from support.kafka_broker import cluster  # noqa: PLC0415  only Kafka's tests load its clients

    async with cluster(tmp_path, 1) as broker:
        print(f"Kafka: {broker.kind}, logs: {broker.log}")
        yield broker


@pytest.fixture
async def kafka_cluster(tmp_path: Path) -> AsyncIterator["Cluster"]:
    """Three nodes for this test alone, to kill and restart."""
    from support.kafka_broker import cluster  # noqa: PLC0415  only Kafka's tests load its clients

    async with cluster(tmp_path, 3) as broker:
        print(f"Kafka: {broker.kind}, logs: {broker.log}")
        yield broker
