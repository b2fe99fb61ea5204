"""Those who vote: by Kafka and MQTT with a signature, over HTTP with a token."""

import asyncio
import base64
import contextlib
import json
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiokafka import AIOKafkaProducer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from bench.servers.brokers import Kafka, Mosquitto
from bridge.common.signatures import Key, read_key, sign

APPROVER = "orders"
TOKENS = [f"bench-token-{number}" for number in range(8)]
"""Several, because the API limits how often each of them may vote."""
_SEED = bytes(range(32))
SECRET = f"whsk_{base64.b64encode(_SEED).decode()}"
_PUBLIC = Ed25519PrivateKey.from_private_bytes(_SEED).public_key().public_bytes_raw()
PUBLIC = f"whpk_{base64.b64encode(_PUBLIC).decode()}"
ALLOW: list[dict[str, Any]] = [
    {"approver": APPROVER, "keys": [{"ed25519": PUBLIC}]},
    *({"approver": token, "token": token} for token in TOKENS),
]
Vote = Callable[[str], Awaitable[None]]
"""Approves the event with this id; returns when the vote has left."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """A signed message."""

    body: bytes
    headers: dict[str, str]

    @property
    def pairs(self) -> list[tuple[str, bytes]]:
        return [(name, value.encode()) for name, value in self.headers.items()]


def ballot(event_id: str, key: Key, **said: Any) -> Ballot:
    body = json.dumps({"eventId": event_id, **said}).encode()
    return Ballot(body, sign([key], uuid.uuid4().hex, int(time.time()), body))


@dataclass(frozen=True, slots=True)
class Channels:
    """The topics of one program, and the port of its API."""

    kafka: dict[str, Any]
    mqtt: dict[str, Any]
    port: int
    path: str
    key: Key = field(default_factory=lambda: read_key(SECRET))


@contextlib.asynccontextmanager
async def producer(kafka: Kafka) -> AsyncGenerator[AIOKafkaProducer]:
    made = AIOKafkaProducer(bootstrap_servers=kafka.address, acks=1)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@contextlib.asynccontextmanager
async def voters(
    kafka: Kafka, mosquitto: Mosquitto, channels: Sequence[Channels]
) -> AsyncGenerator[list[dict[str, Vote]]]:
    """For each program, how to vote on each of its channels."""
    mqtt = Client(CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5)
    mqtt.connect("127.0.0.1", mosquitto.port)
    mqtt.loop_start()
    try:
        async with producer(kafka) as sending, aiohttp.ClientSession() as http:
            yield [_ways(each, sending, mqtt, http) for each in channels]
    finally:
        mqtt.disconnect()
        mqtt.loop_stop()


def _ways(
    to: Channels, sending: AIOKafkaProducer, mqtt: Client, http: aiohttp.ClientSession
) -> dict[str, Vote]:
    tasks: set[asyncio.Task[None]] = set()
    count = 0

    async def by_kafka(event_id: str) -> None:
        made = ballot(event_id, to.key)
        await sending.send(to.kafka["topic"], made.body, headers=made.pairs)

    async def by_mqtt(event_id: str) -> None:
        made = ballot(event_id, to.key)
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]  # paho has no hints here
        properties.UserProperty = list(made.headers.items())
        mqtt.publish(to.mqtt["topic"], made.body, qos=1, properties=properties)

    async def by_http(event_id: str) -> None:
        nonlocal count
        count += 1
        task = asyncio.create_task(_post(http, to, event_id, TOKENS[count % len(TOKENS)]))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    return {"kafka": by_kafka, "mqtt": by_mqtt, "http": by_http}


async def _post(http: aiohttp.ClientSession, to: Channels, event_id: str, token: str) -> None:
    """The bridge answers once it knows what became of the vote, so nobody waits for this."""
    url, headers = f"http://127.0.0.1:{to.port}{to.path}", {"Authorization": f"Bearer {token}"}
    async with http.post(url, json={"eventId": event_id}, headers=headers) as answer:
        if answer.status >= 300:
            raise RuntimeError(f"a vote was answered with {answer.status}: {await answer.text()}")
