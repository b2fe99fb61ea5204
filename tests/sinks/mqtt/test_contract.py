"""The MQTT sink does what every sink must, against a real Mosquitto, in both versions."""

import json
from typing import ClassVar
from uuid import uuid4

import pytest
from support.mosquitto import Mosquitto, must_be_ours
from support.mosquitto_clients import Subscriber, mosquitto_sub
from support.mqtt_proxy import MqttProxy, mqtt_proxied
from support.sink_contract import FailingPeer, SinkContract

from bridge.plugins import Place
from sinks.mqtt import MqttSettings, sink

ACL = "topic readwrite #\ntopic deny +/shut/#\n"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    must_be_ours()
    with Mosquitto(tmp_path_factory.mktemp("mosquitto"), acl=ACL) as broker:
        yield broker


class MqttPeer(FailingPeer):
    """Topics of its own on the broker, behind a proxy that can fail."""

    def __init__(self, proxy: MqttProxy, topic: str, subscriber: Subscriber, **keys) -> None:
        self.network, self.subscriber = proxy, subscriber
        self.place = Place({"vm_id": topic.partition("/")[0], "observer": "web-1"}, sink="plant")
        given = {"type": "mqtt", "host": "127.0.0.1", "port": proxy.port, "topic": topic}
        self.settings = MqttSettings.model_validate(given | {"retry": {"timeout": "5s"}} | keys)

    async def received(self):
        return [json.loads(payload) for payload in self.subscriber.payloads]

    async def refuse(self, ids):
        self.network.refused |= {each.encode() for each in ids}


class Mqtt(SinkContract):
    plugin = sink
    keys: ClassVar[dict] = {}

    @pytest.fixture
    async def peer(self, broker):
        mine = uuid4().hex
        async with (
            mqtt_proxied(broker.host, broker.port) as proxy,
            mosquitto_sub(broker, f"{mine}/open/#") as subscriber,
        ):
            yield MqttPeer(proxy, f"{mine}/open/{{subject}}", subscriber, **self.keys)


class TestVersion5(Mqtt):
    pass


class TestVersion311(Mqtt):
    keys: ClassVar[dict] = {"version": "3.1.1"}
    cannot_reject = "MQTT 3.1.1 acknowledges what it throws away"
