"""What `seb check --connect` does at an MQTT server."""

import asyncio

import pytest
from support.mqtt_sending import PLACE, settings
from support.results import proved
from support.scripted_mqtt import scripted_mqtt

from bridge.plugins import Listening, Unavailable
from sinks.mqtt import MqttApprovals, approvals, sink


async def test_the_check_uses_a_client_id_of_its_own_and_publishes_nothing():
    async with scripted_mqtt() as server:
        said = await proved(sink, settings(server.port, birth_topic="b"), PLACE)
        assert server.published == []
    assert b"seb-vm-1-sink-plant-check" in server.connects[0]
    assert f"connected at 127.0.0.1:{server.port} by MQTT 5 without TLS" in said
    assert "nothing was" in said


def approvals_from(port: int, **keys: object) -> MqttApprovals:
    usual = {"type": "mqtt", "host": "127.0.0.1", "port": port, "topic": "a/b"}
    return MqttApprovals.model_validate({**usual, "trust": "transport", **keys})


async def test_the_check_of_an_approval_source_neither_takes_over_nor_keeps_a_session(mosquitto):
    running = approvals_from(mosquitto.port, client_id="seb-votes")
    listening = Listening("votes", {}, 0.0, lambda _: None)
    async with approvals.open(running, PLACE, listening) as deliveries:
        coming = asyncio.ensure_future(anext(deliveries))
        assert approvals.check is not None
        said = await approvals.check(running, PLACE)
        assert said == f"may read topic a/b at 127.0.0.1:{mosquitto.port} by MQTT 5 without TLS"
        await asyncio.sleep(0.2)
        assert not coming.done()
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)


async def test_the_check_of_an_approval_source_says_why_it_cannot_be_read(make_mosquitto):
    broker = make_mosquitto(users={"ann": "right"})
    assert approvals.check is not None
    settings = approvals_from(broker.port, username="ann", password="wrong")
    with pytest.raises(Unavailable, match=r"username|password"):
        await approvals.check(settings, PLACE)
