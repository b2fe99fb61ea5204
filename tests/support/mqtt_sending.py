"""The MQTT sink as its tests use it: settings for a server on loopback, and a batch sent."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from support.sink_contract import PATIENCE

from bridge.plugins import CloudEvent, Place, Result, Unavailable
from sinks.mqtt import MqttSettings, sink

PLACE = Place({"vm_id": "vm-1", "observer": "web-1"}, sink="plant")


def settings(port: int, **keys: Any) -> MqttSettings:
    given = {"type": "mqtt", "host": "127.0.0.1", "port": port, "birth_topic": None}
    return MqttSettings.model_validate(given | {"retry": {"timeout": "5s"}} | keys)


async def send(made: MqttSettings, cloudevents: Sequence[CloudEvent]) -> list[Result]:
    async with asyncio.timeout(PATIENCE), sink.open(made, PLACE) as sending:
        return list(await sending(cloudevents))


async def refused(made: MqttSettings, cloudevents: Sequence[CloudEvent] = ()) -> Unavailable:
    with pytest.raises(Unavailable) as told:
        await send(made, cloudevents)
    return told.value
