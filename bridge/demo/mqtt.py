"""The demo's MQTT: a broker in this process, and a plant floor that approves freezes.

The plant floor shares no code with the bridge: it is what a user's own subscriber would look like.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bridge.core.cloudevent import short_type
from bridge.demo.extras import need

APPROVALS = "azure/scheduled-events/approvals"
SINK = """\
  plant-floor:
    type: mqtt
    host: 127.0.0.1
    port: {port}
    version: 3.1.1
"""
SOURCE = f"""\
    plant-floor: {{sink: plant-floor, topic: {APPROVALS}, client_id: seb-demo, trust: transport}}
"""
_BROKER = {
    "listeners": {"default": {"type": "tcp", "bind": "127.0.0.1:0"}},
    "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True}},
}


@dataclass(slots=True)
class PlantFloor:
    """A subscriber that stops its machines and approves."""

    port: int
    note: Callable[[str], None]
    client: Any

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def sink(self) -> str:
        """The sink that reaches it, as lines of the configuration."""
        return SINK.format(port=self.port)

    async def work(self) -> None:
        """Subscribe until canceled."""
        await self.client.connect(f"mqtt://{self.address}/")
        try:
            await self.client.subscribe([("azure/scheduled-events/events/#", 1)])
            while True:
                message = await self.client.deliver_message()
                await self._hear(json.loads(message.data))
        finally:
            await self.client.disconnect()

    async def _hear(self, envelope: dict[str, Any]) -> None:
        what = short_type(envelope["type"])
        data = envelope["data"]
        if data.get("status") is None or data.get("eventType") != "Freeze":
            return
        self.note(f"MQTT to plant-floor: {data['eventType']} {data['eventId'][:8]} {what}")
        if what == "scheduled":
            said = {"eventId": data["eventId"], "approver": "plant-floor", "reason": "idle"}
            said["seen"] = data["state"]
            await self.client.publish(APPROVALS, json.dumps(said).encode(), qos=1)
            self.note(f"plant-floor is idle and approves on {APPROVALS}")


@asynccontextmanager
async def plant_floor(note: Callable[[str], None]) -> AsyncGenerator[PlantFloor]:
    """A plant floor with a broker on a free port, until the demo ends."""
    brokers, clients = need("mqtt", ("amqtt.broker", "amqtt.client"))
    broker = brokers.Broker(_BROKER)
    await broker.start()
    port = broker._servers["default"].instance.sockets[0].getsockname()[1]  # noqa: SLF001  there is no public name
    client = clients.MQTTClient("plant-floor", config={"auto_reconnect": False})
    floor = PlantFloor(port, note, client)
    working = asyncio.create_task(floor.work())
    try:
        yield floor
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await broker.shutdown()
