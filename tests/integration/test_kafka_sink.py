"""The Kafka sink against a real broker."""

import pytest
from support.kafka_broker import Broker
from support.kafka_proxy import Proxy, proxied
from support.kafka_reader import read_topic
from support.sink_contract import FarSide, SinkContract

from bridge.plugins import Place
from sinks.kafka import KafkaSettings, sink

PLACE = Place({"vm_id": "vm-1", "vm_name": "web-1"}, sink="bus")


def settings(servers: str, topic: str, **more) -> KafkaSettings:
    return KafkaSettings.model_validate(
        {"type": "kafka", "bootstrap_servers": [servers], "topic": topic}
        | {"retry": {"timeout": "3s"}}
        | more
    )


class KafkaFarSide(FarSide):
    """A topic of its own on the broker, behind a proxy that can fail."""

    place = PLACE

    def __init__(self, kafka: Broker, proxy: Proxy, topic: str, mode: str) -> None:
        self.kafka, self.proxy, self.topic = kafka, proxy, topic
        self.settings = settings(proxy.address, topic, mode=mode)

    async def received(self):
        return [record.envelope for record in await read_topic(self.kafka.bootstrap, self.topic)]

    async def down(self):
        await self.proxy.down()

    async def up(self):
        await self.proxy.up()

    async def stall(self):
        self.proxy.stall()

    async def release(self):
        self.proxy.release()

    async def refuse(self, ids):
        self.kafka.must_be_real("it takes damaged records")
        self.proxy.refused |= {each.encode() for each in ids}


@pytest.fixture
async def proxy(kafka: Broker):
    async with proxied(kafka.bootstrap) as proxy:
        yield proxy


class TestBinary(SinkContract):
    plugin = sink

    @pytest.fixture
    async def far(self, kafka: Broker, proxy: Proxy):
        return KafkaFarSide(kafka, proxy, await kafka.topic(3), "binary")


class TestStructured(SinkContract):
    plugin = sink

    @pytest.fixture
    async def far(self, kafka: Broker, proxy: Proxy):
        return KafkaFarSide(kafka, proxy, await kafka.topic(3), "structured")
