"""Simulator, bridge, Mosquitto and back, seen from outside only: Mosquitto's clients, and the truth."""

import asyncio
import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bridge_process import Stage, announce, posts
from support.judge import as_lines, judge
from support.mosquitto import Mosquitto
from support.mosquitto_clients import Subscriber, mosquitto_pub, mosquitto_sub
from support.mqtt_stage import (
    approvals_topic,
    envelope,
    kind,
    mqtt_sink,
    mqtt_stage,
    new_root,
    until_told,
)
from support.tcp_proxy import TcpProxy, tcp_proxied
from support.until import until

Make = Callable[..., Mosquitto]


async def test_an_approval_of_mosquitto_pub_starts_what_mosquitto_sub_read_of(
    mosquitto, tmp_path: Path
):
    root = new_root()
    async with (
        mqtt_stage(tmp_path, mosquitto, root, response_topic=approvals_topic(root)) as at,
        mosquitto_sub(mosquitto, f"{root}/events/#") as found,
        mosquitto_sub(mosquitto, f"{root}/bridges/#") as presence,
    ):
        await at.start()
        await at.until_said("approvals.connected")
        one, two = [announce(at, name, started_for=None) for name in ("one", "two")]
        for event in (one, two):
            scheduled = (await until_told(found, "scheduled", of=event))["scheduled"]
            properties = scheduled["properties"]
            assert properties["content-type"] == "application/cloudevents+json; charset=utf-8"
            assert properties["payload-format-indicator"] == 1
            assert properties["response-topic"] == approvals_topic(root)
            data = envelope(scheduled)["data"]
            assert data["eventId"] == event
            assert properties["correlation-data"] == f"{event}/{data['state']}"
        await mosquitto_pub(
            mosquitto, approvals_topic(root), {"eventId": one, "approver": "orders"}
        )
        answer = (scheduled["properties"]["response-topic"], b"")
        correlation = ("correlation-data", scheduled["properties"]["correlation-data"])
        await mosquitto_pub(mosquitto, *answer, properties=[correlation])
        for event, name in ((one, "one"), (two, "two")):
            told = await until_told(found, "approval.granted", "started", of=event)
            assert envelope(told["approval.granted"])["data"]["via"] == "plant"
            at.world.complete(name)
            await until_told(found, "completed", of=event)
        assert await at.stop() == 0
        assert sorted(name for post in posts(at) for name in post["eventIds"]) == sorted([one, two])
        stories: dict[str, list[str]] = {event: [] for event in (one, two)}
        for message in found.messages:
            stories.get(envelope(message)["subject"], []).append(kind(message))
        expected = ["scheduled", "approval.granted", "started", "completed"]
        assert stories == {one: expected, two: expected}
        await presence.until(lambda got: len(got) > 1, "birth and end of a bridge that was new")
        lives = [json.loads(each["payload"]) for each in presence.messages]
        assert [each["status"] for each in lives] == ["online", "offline"]
        assert {each["client"] for each in lives} == {f"seb-{lives[0]['vmId']}-sink-plant"}


async def test_an_approval_that_waited_and_survived_two_kills_is_acted_on_once(
    mosquitto, tmp_path: Path
):
    root = new_root()
    async with (
        mqtt_stage(tmp_path, mosquitto, root) as at,
        mosquitto_sub(mosquitto, f"{root}/events/#") as found,
    ):
        await at.start()
        await at.until_said("approvals.connected")
        event = announce(at, "reboot", started_for="10m")
        await until_told(found, "scheduled", of=event)
        assert await at.stop() == 0
        await mosquitto_pub(
            mosquitto, approvals_topic(root), {"eventId": event, "approver": "orders"}
        )
        before_the_journal, before_the_acknowledgment = 1, 2
        for place in (before_the_journal, before_the_acknowledgment):
            await at.start(faults={"around_ballot": place})
            assert await at.ended() == -signal.SIGKILL, at.output()
            assert posts(at) == []
        await at.start()
        await until_told(found, "approval.granted", of=event)
        await mosquitto_pub(mosquitto, approvals_topic(root), b"the last")
        await at.until_said("approval.stray")
        assert await at.stop() == 0
        assert [post["eventIds"] for post in posts(at)] == [[event]]
    granted = [each for each in found.messages if kind(each) == "approval.granted"]
    assert len({envelope(each)["id"] for each in granted}) == 1


async def flow(at: Stage) -> None:
    """Reboots without end, each announced, started and completed within two seconds."""
    for number in range(1000):
        announce(at, f"event-{number}", notice="1s", started_for="500ms")
        await asyncio.sleep(0.1)


async def subscribed(subscriber: Subscriber, before: int) -> None:
    """Once more than *before*."""
    await subscriber.until(lambda _: subscriber.subscriptions() > before, "a subscriber")


async def again(broker: Mosquitto, proxy: TcpProxy, *found: Subscriber) -> None:
    """The broker dies and comes back; who only listens is back before the bridge is."""
    await asyncio.to_thread(broker.kill)
    await proxy.down()
    before = [each.subscriptions() for each in found]
    await asyncio.to_thread(broker.start)
    for each, count in zip(found, before, strict=True):
        await subscribed(each, count)
    await proxy.up()


@pytest.mark.timeout(120)
async def test_a_broker_dies_in_a_storm_and_a_connection_without_a_word_and_nothing_is_lost(
    make_mosquitto: Make, tmp_path: Path
):
    broker, root = make_mosquitto(), new_root()
    async with (
        tcp_proxied(broker.host, broker.port) as proxy,
        mqtt_stage(tmp_path, proxy, root) as at,
        mosquitto_sub(broker, f"{root}/events/#", qos=0) as structured,
        mosquitto_sub(broker, f"{root}/binary/#", qos=0) as binary,
    ):
        hasty = {"keep_alive": "1s", "retry": {"timeout": "1s"}}
        other = {"topic": f"{root}/binary/{{subject}}", "mode": "binary", "birth_topic": None}
        at.configure(
            sinks={
                "plant": mqtt_sink(proxy, root, **hasty),
                "other": mqtt_sink(proxy, root, **hasty | other),
            },
            stop_grace="30s",
        )
        await at.start()
        flowing = asyncio.create_task(flow(at))
        await structured.until(len, "the storm")
        await again(broker, proxy, structured, binary)
        count = len(structured.messages)
        await structured.until(lambda got: len(got) > count + 5, "the storm again")
        proxy.drop()
        count = len(structured.messages)
        await structured.until(lambda got: len(got) > count + 20, "more of the storm")
        flowing.cancel()
        await until(lambda: not at.world.entries, "all events to end")
        await at.polled(3)
        assert await at.stop() == 0
        assert at.said("bridge.stopped")[0]["undelivered"] == 0
        streams = {"structured": structured.messages, "binary": binary.messages}
        files = [
            as_lines(map(envelope, got), tmp_path / f"{name}.jsonl")
            for name, got in streams.items()
        ]
        assert judge(at.simulator.truth, at.shown, files) == []
        assert any(each["sink"] == "plant" for each in at.said("sink.unavailable"))


def test_the_stage_reads_both_modes():
    data = {"eventId": "A"}
    structured = {"payload": json.dumps({"id": "1", "data": data})}
    user = {"id": "1", "severitynumber": "9"}
    properties = {"content-type": "application/json", "user-properties": user}
    binary = {"properties": properties, "payload": json.dumps(data)}
    assert envelope(structured) == {"id": "1", "data": data}
    assert envelope(binary) == {
        "id": "1", "severitynumber": 9, "datacontenttype": "application/json", "data": data,
    }  # fmt: skip
