"""What `seb check --connect` does at an MQTT server."""

from support.mqtt_sending import PLACE, settings
from support.results import proved
from support.scripted_mqtt import (
    scripted_mqtt,
)

from sinks.mqtt import sink


async def test_the_check_uses_a_client_id_of_its_own_and_publishes_nothing():
    async with scripted_mqtt() as server:
        said = await proved(sink, settings(server.port, birth_topic="b"), PLACE)
        assert server.published == []
    assert b"seb-vm-1-sink-plant-check" in server.connects[0]
    assert f"connected at 127.0.0.1:{server.port} by MQTT 5 without TLS" in said
    assert "nothing was" in said
