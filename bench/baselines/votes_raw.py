"""The least that takes votes durably: verify, one commit for what arrived, and batched POSTs.

`python -m bench.baselines.votes_raw SETTINGS` reads JSON: the endpoint's `url`, a `folder`, the
`key`, the `tokens`, how often to `poll`, whether it `posts`, and its channels `kafka`, `mqtt` and
`port`.
"""

import asyncio
import base64
import hmac
import json
import sqlite3
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import aiohttp
from aiohttp import web
from aiokafka import AIOKafkaConsumer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

_EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
_AT_ONCE = 100
_TABLES = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
CREATE TABLE vote(id TEXT PRIMARY KEY, event TEXT, body BLOB) WITHOUT ROWID;
CREATE TABLE position(source TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;
CREATE TABLE posted(event TEXT PRIMARY KEY) WITHOUT ROWID;
"""
Message = tuple[str, bytes]
"""An id, and a verified body."""


class Budget:
    """Five requests a second, for polls and POSTs together."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=5)
        self._turn = asyncio.Lock()

    async def take(self) -> None:
        async with self._turn:
            if len(self._recent) == 5:
                await asyncio.sleep(max(0.0, self._recent[0] + 1 - time.monotonic()))
            self._recent.append(time.monotonic())


class Votes:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        raw = base64.b64decode(settings["key"].partition("_")[2])
        self._key = Ed25519PublicKey.from_public_bytes(raw)
        self._budget = Budget()
        self._known: set[str] = set()
        self._due: list[str] = []
        self._news = asyncio.Event()
        self._database = sqlite3.connect(f"{settings['folder']}/baseline.sqlite")
        self._database.executescript(_TABLES)

    def verify(self, headers: dict[str, bytes], body: bytes) -> Message:
        """Raises when the signature is not good."""
        name, at = headers["webhook-id"], headers["webhook-timestamp"]
        signature = base64.b64decode(headers["webhook-signature"].partition(b",")[2])
        self._key.verify(signature, b"%b.%b.%b" % (name, at, body))
        return name.decode(), body

    def record(self, messages: Sequence[Message], source: str = "", position: int = 0) -> None:
        """One durable commit; what it names is due then."""
        read = [(name, json.loads(body)["eventId"], body) for name, body in messages]
        with self._database:
            self._database.executemany("INSERT OR IGNORE INTO vote VALUES (?, ?, ?)", read)
            if source:
                row = (source, position)
                self._database.execute("INSERT OR REPLACE INTO position VALUES (?, ?)", row)
        self._due += [event for _, event, _ in read if event in self._known]
        self._news.set()

    async def poll(self, http: aiohttp.ClientSession) -> None:
        while True:
            await self._budget.take()
            async with http.get(self.settings["url"] + _EVENTS) as answer:
                document = json.loads(await answer.read())
            events = document["Events"]
            self._known = {e["EventId"] for e in events if e["EventStatus"] == "Scheduled"}
            await asyncio.sleep(self.settings["poll"])

    async def post(self, http: aiohttp.ClientSession) -> None:
        while True:
            await self._news.wait()
            await self._budget.take()
            self._news.clear()
            due, self._due = self._due[:_AT_ONCE], self._due[_AT_ONCE:]
            if self._due:
                self._news.set()
            if not due:
                continue
            body = {"StartRequests": [{"EventId": event} for event in due]}
            async with http.post(self.settings["url"] + _EVENTS, json=body) as answer:
                answer.raise_for_status()
            with self._database:
                rows = [(event,) for event in due]
                self._database.executemany("INSERT OR IGNORE INTO posted VALUES (?)", rows)

    async def kafka(self, topic: str, servers: Sequence[str]) -> None:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=servers, auto_offset_reset="earliest", enable_auto_commit=False
        )
        await consumer.start()
        while True:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                read = [self.verify(dict(one.headers), one.value) for one in records]
                self.record(read, topic, records[-1].offset)

    async def mqtt(self, topic: str, port: int) -> None:
        loop, arrived = asyncio.get_running_loop(), asyncio.Queue[MQTTMessage]()
        client = Client(
            CallbackAPIVersion.VERSION2, protocol=MQTTProtocolVersion.MQTTv5, manual_ack=True
        )

        def subscribe(*_: object) -> None:
            client.subscribe(topic, qos=1)

        def arrive(_client: Client, _data: object, message: MQTTMessage) -> None:
            loop.call_soon_threadsafe(arrived.put_nowait, message)

        client.on_connect, client.on_message = subscribe, arrive
        client.connect("127.0.0.1", port)
        client.loop_start()
        while True:
            messages = [await arrived.get()]
            messages += [arrived.get_nowait() for _ in range(arrived.qsize())]
            self.record([self.verify(_headers(one), bytes(one.payload)) for one in messages])
            for one in messages:
                client.ack(one.mid, one.qos)

    async def listen(self, port: int) -> None:
        app = web.Application()
        app.router.add_post("/votes", self._take)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()

    async def _take(self, request: web.Request) -> web.Response:
        token = request.headers["Authorization"].partition(" ")[2]
        if not any(hmac.compare_digest(token, known) for known in self.settings["tokens"]):
            return web.Response(status=401)
        body = await request.read()
        self.record([(f"{token}/{time.monotonic_ns()}", body)])
        return web.Response(status=202)


def _headers(message: MQTTMessage) -> dict[str, bytes]:
    properties = getattr(message.properties, "UserProperty", [])
    return {name: value.encode() for name, value in properties}


async def main(settings: dict[str, Any]) -> None:
    votes = Votes(settings)
    headers = {"Metadata": "true"}
    async with aiohttp.ClientSession(headers=headers) as http, asyncio.TaskGroup() as group:
        group.create_task(votes.poll(http))
        if settings["posts"]:
            group.create_task(votes.post(http))
        if port := settings.get("port"):
            await votes.listen(port)
        if bus := settings.get("mqtt"):
            group.create_task(votes.mqtt(bus["topic"], bus["port"]))
        bus = settings["kafka"]
        group.create_task(votes.kafka(bus["topic"], bus["bootstrap_servers"]))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
