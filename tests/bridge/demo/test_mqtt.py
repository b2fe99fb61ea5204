"""The plant floor of the demo: it gets freezes, and approves when it is idle."""

import json
from typing import Any

import yaml
from support.cloudevents import make
from support.until import until

from bridge.demo.mqtt import APPROVALS, PlantFloor, plant_floor


class Client:
    """Keeps what is published."""

    def __init__(self) -> None:
        self.said: list[tuple[str, Any]] = []

    async def publish(self, topic: str, payload: bytes, qos: int) -> None:
        assert qos == 1
        self.said.append((topic, json.loads(payload)))


def at_rest(notes: list[str]) -> tuple[PlantFloor, Client]:
    client = Client()
    return PlantFloor(1883, notes.append, client), client


async def test_a_freeze_that_is_announced_is_approved():
    notes: list[str] = []
    floor, client = at_rest(notes)
    told = make(eventType="Freeze")
    await floor._hear(told.envelope)
    said = {"eventId": told.data["eventId"], "approver": "plant-floor", "reason": "idle"}
    said["seen"] = told.data["state"]
    assert client.said == [(APPROVALS, said)]
    assert notes[0].startswith("MQTT to plant-floor: Freeze ")


async def test_only_announced_freezes_are_approved():
    notes: list[str] = []
    floor, client = at_rest(notes)
    await floor._hear(make(eventType="Reboot").envelope)
    started = make(eventType="Freeze").envelope
    await floor._hear({**started, "type": "azure.scheduledevents.started.v1"})
    assert client.said == []
    assert len(notes) == 1


def test_the_sink_that_reaches_it_is_configured_by_its_port():
    floor, _ = at_rest([])
    sink = yaml.safe_load(floor.sink)["plant-floor"]
    assert (sink["type"], sink["host"], sink["port"]) == ("mqtt", "127.0.0.1", 1883)
    assert floor.address == "127.0.0.1:1883"


async def test_it_receives_and_approves_over_its_own_broker():
    notes: list[str] = []
    async with plant_floor(notes.append) as floor:
        await until(lambda: floor.client.session is not None, patience=10)
        envelope = make(eventType="Freeze").envelope
        topic = "azure/scheduled-events/events/vm-0"

        async def heard() -> bool:
            if not notes:
                await floor.client.publish(topic, json.dumps(envelope).encode(), qos=1)
            return len(notes) >= 2

        await until(heard, patience=15)
    assert notes[1] == f"plant-floor is idle and approves on {APPROVALS}"
