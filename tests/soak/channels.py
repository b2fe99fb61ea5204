"""The channels on which votes are cast; each vote is sent until its transport has confirmed it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from confluent_kafka import KafkaException, Producer
from soak.settings import FORGER, MQTT_VOTES, PLANT, VOTES
from soak.stage import Stage
from support.debian import ToolFailed
from support.kafka_node import quiet
from support.mosquitto_clients import mosquitto_pub

Json = dict[str, Any]
Send = Callable[[], Awaitable[None]]
APPROVERS = {"kafka": "orders", "mqtt": "plant", "http": "ops"}
"""Who votes on which channel, unless somebody pretends."""
UNCONFIRMED = (KafkaException, ToolFailed, TimeoutError, ConnectionError)
"""What sending raises when nobody knows whether the vote arrived."""


class Channels:
    """Makes of what is said, and a name for it, a message that can be sent again and again."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._producer = self._connect()

    def _connect(self) -> Producer:
        servers = {"bootstrap.servers": self._stage.kafka.bootstrap, "acks": "all"}
        return Producer(quiet({**servers, "message.timeout.ms": "5000"}))

    def message(
        self, channel: str, said: Json, name: str, *, forged: bool = False, refusable: bool = False
    ) -> Send:
        """A *forged* one has the wrong signature; a *refusable* one may be refused by HTTP."""
        said = {"approver": APPROVERS[channel], **said}
        if channel == "kafka":
            return self._to_kafka(said, name)
        if channel == "mqtt":
            return self._to_mqtt(said, name, forged=forged)
        return self._to_http(said, name, {202, 403, 409} if refusable else {202})

    def _to_kafka(self, said: Json, name: str) -> Send:
        body = json.dumps({**said, "id": name}).encode()

        def produce() -> None:
            errors: list[Any] = []
            self._producer.produce(
                VOTES, body, key=said["eventId"], on_delivery=lambda error, _: errors.append(error)
            )
            self._producer.flush(7)
            if not errors or errors[0] is not None:
                # librdkafka may not find the leaders of a topic that was made anew.
                self._producer = self._connect()
                raise ConnectionError(f"not confirmed: {errors}")

        async def send() -> None:
            await asyncio.to_thread(produce)

        return send

    def _to_mqtt(self, said: Json, name: str, *, forged: bool) -> Send:
        signer = FORGER if forged else PLANT
        body = json.dumps(said).encode()
        signed = [("user-property", *pair) for pair in signer.headers(body, name).items()]

        async def send() -> None:
            async with self._stage.mqtt_gate:
                await mosquitto_pub(self._stage.mosquitto, MQTT_VOTES, body, properties=signed)

        return send

    def _to_http(self, said: Json, name: str, fits: set[int]) -> Send:
        bridge = self._stage.bridges[said["resource"]]

        async def send() -> None:
            body = {**said, "id": name}
            status, answer = await bridge.ask("/api/v1/approvals", "POST", json=body)
            if status not in fits:
                raise ConnectionError(f"{status} {answer}")

        return send
