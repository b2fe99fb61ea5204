"""One real bridge with all its channels open, and every attack through each of them."""

import contextlib
import json
import sqlite3
import uuid
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiokafka import AIOKafkaProducer
from support.attacks import ATTACKS, BILLING, ORDERS, RULES, Attack, Message, signed
from support.bridge_process import Stage, stage
from support.mosquitto_clients import mosquitto_pub
from support.ports import free_ports

PATH = "/api/v1/approvals"
TOKEN = {"Authorization": "Bearer not-in-allow"}
BUSES = ("kafka", "mqtt-5", "mqtt-3")


@dataclass
class Channels:
    """The sender's end of each channel; the bridge's end has the same name."""

    http: aiohttp.ClientSession
    producer: AIOKafkaProducer
    broker: Any
    topic: str

    async def post(self, message: Message, **more: str) -> tuple[int, str | None]:
        kind = {"Content-Type": "application/json"} if not has_type(message) else {}
        headers = [*message.headers, *kind.items(), *more.items()]
        async with self.http.post(PATH, data=message.body, headers=headers) as answer:
            return answer.status, (await answer.json()).get("reason")

    async def send(self, channel: str, message: Message, *options: str) -> None:
        if channel == "kafka":
            headers = [(name, value.encode()) for name, value in message.headers]
            await self.producer.send_and_wait(self.topic, message.body, headers=headers)
        elif channel == "mqtt-5":
            await mosquitto_pub(
                self.broker, f"{self.topic}/5", message.body, *options, properties=named(message)
            )
        else:
            body = message.wrapped() if message.headers else message.body
            await mosquitto_pub(self.broker, f"{self.topic}/3", body, *options, version="311")


def has_type(message: Message) -> bool:
    return any(name == "content-type" for name, _ in message.headers)


def named(message: Message) -> Iterable[tuple[str, ...]]:
    """Attributes have no prefix in MQTT, and the content type is a separate property."""
    for name, value in message.headers:
        if name == "content-type":
            yield name, value
        else:
            yield "user-property", name.removeprefix("ce-"), value


def sources(kafka: Any, broker: Any, topic: str) -> dict[str, Any]:
    mqtt = {"type": "mqtt", "host": broker.host, "port": broker.port, "trust": "signed"}
    servers = kafka.bootstrap.split(",")
    return {
        "kafka": {"type": "kafka", "bootstrap_servers": servers, "topic": topic, "trust": "signed"},
        "mqtt-5": {**mqtt, "topic": f"{topic}/5", "client_id": f"{topic}-5"},
        "mqtt-3": {**mqtt, "topic": f"{topic}/3", "client_id": f"{topic}-3", "version": "3.1.1"},
    }


@contextlib.asynccontextmanager
async def opened(folder: Path, kafka: Any, broker: Any) -> AsyncGenerator[tuple[Stage, Channels]]:
    topic, [port] = await kafka.topic(name=f"attacked-{uuid.uuid4().hex}"), free_ports(1)
    approvals = {**RULES, "from": sources(kafka, broker, topic), "answer_strays": True}
    tokens = [{"name": "ops", "token": "not-in-allow"}]
    http = {"listen": f"127.0.0.1:{port}", "tokens": tokens}
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap)
    async with (
        stage(folder, approvals=approvals, http=http, stop_grace="5s") as at,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        await producer.start()
        try:
            yield at, Channels(session, producer, broker, topic)
        finally:
            await producer.stop()


async def started(at: Stage) -> None:
    await at.start()
    await at.until(lambda: len(at.said("approvals.connected")) == len(BUSES), "all channels")


def announce(at: Stage, name: str) -> str:
    return at.world.create(name=name, type="Reboot", notice="1h", started_for="10m").event.key


def posted(at: Stage) -> list[str]:
    told = [one["eventIds"] for one in at.simulator.truth if one["what"] == "approval"]
    return sorted(name for names in told for name in names)


def refusals(at: Stage, via: str, event: str) -> list[str]:
    """The published reasons for one event, or for messages without a readable event."""
    with contextlib.closing(sqlite3.connect(f"file:{at.journal}?mode=ro", uri=True)) as db:
        sql = "SELECT body FROM outbox WHERE type GLOB '*.approval.refused.v1' ORDER BY seq"
        told = [json.loads(body)["data"] for (body,) in db.execute(sql)]
    mine = [one for one in told if one["via"] == via and one["eventId"] in {event, None}]
    return [one["reason"] for one in mine]


def carried(channel: str) -> list[Attack]:
    return [attack for attack in ATTACKS if channel != "mqtt-3" or not attack.headers]


async def attack(at: Stage, channels: Channels, targets: dict[str, str]) -> None:
    for each in ATTACKS:
        status, reason = await channels.post(each.make(targets["http"]))
        assert status == each.status, each.name
        assert reason in {each.local_reason or each.reason, None}, each.name
    plain = Message(json.dumps({"eventId": targets["http"]}).encode(), [])
    assert await channels.post(plain, **TOKEN) == (403, "unauthorized")
    for channel in BUSES:
        for each in carried(channel):
            await channels.send(channel, each.make(targets[channel]))


async def test_no_attack_through_any_channel_reaches_azure(kafka, mosquitto, tmp_path):
    async with opened(tmp_path, kafka, mosquitto) as (at, channels):
        targets = {channel: announce(at, f"target-{channel}") for channel in ("http", *BUSES)}
        good = {channel: announce(at, f"good-{channel}") for channel in ("http", *BUSES)}
        for channel in ("mqtt-5", "mqtt-3"):
            await channels.send(channel, signed(ORDERS, targets[channel], "kept"), "-r")
        await started(at)
        await at.polled()
        for event in (*targets.values(), *good.values()):
            assert await channels.post(signed(BILLING, event, "b")) == (202, None)
        await attack(at, channels, targets)
        for channel in BUSES:
            await channels.send(channel, signed(ORDERS, good[channel], "good"))
        assert (await channels.post(signed(ORDERS, good["http"], "good")))[0] == 202
        await at.until(lambda: len(posted(at)) >= len(good), "the good votes")
        assert await at.stop() == 0
        assert posted(at) == sorted(good.values())
        for channel in BUSES:
            expected = [each.reason for each in carried(channel)]
            assert refusals(at, channel, targets[channel]) == expected, channel


async def test_a_message_taken_once_is_not_taken_again_through_any_channel(
    kafka, mosquitto, tmp_path
):
    """An attacker copies a withdrawn approval, and sends it through every channel."""
    async with opened(tmp_path, kafka, mosquitto) as (at, channels):
        held, good = announce(at, "held"), {channel: announce(at, channel) for channel in BUSES}
        await started(at)
        await at.polled()
        said = signed(ORDERS, held, "yes")
        for message in (said, signed(ORDERS, held, "no", decision="hold")):
            assert (await channels.post(message))[0] == 202
        for channel in BUSES:
            await channels.send(channel, said)
        await at.kill()
        await started(at)
        assert await channels.post(said) == (409, "replayed")
        for channel in BUSES:
            await channels.send(channel, said)
            await channels.send(channel, signed(ORDERS, good[channel], "good"))
        for event in (held, *good.values()):
            assert (await channels.post(signed(BILLING, event, "b")))[0] == 202
        await at.until(lambda: len(posted(at)) >= len(good), "the good votes")
        assert await at.stop() == 0
        assert posted(at) == sorted(good.values()), "the hold stands"
