"""Simulator, bridge, transport and each of the consumers in `examples/`: the whole loop, through a death."""

import json
from pathlib import Path

from support.bridge_process import Stage, posts, stage
from support.example_process import consumer
from support.kafka_broker import Broker
from support.kafka_stage import Topic, kafka_stage
from support.mosquitto_clients import mosquitto_pub, mosquitto_sub
from support.mqtt_stage import approvals_topic, mqtt_stage, new_root
from support.ports import free_ports

READY = "ready, and said so"


async def loop_closes(
    at: Stage, kind: str, *, without_bridge: str | None = None, **environment: str
) -> str:
    """It is killed while it drains, started again, and Azure is told once; what the second one said.

    *without_bridge* is what it says while the bridge is dead too.
    """
    await at.polled()
    event = at.world.create(name="e", type="Reboot", notice="15m", started_for="1s").event.key
    async with consumer(kind, SECONDS="600", **environment) as first:
        await first.until_said("draining: 3 orders left")
    assert posts(at) == []
    if without_bridge:
        await at.kill()
    async with consumer(kind, SECONDS="0", **environment) as second:
        if without_bridge:
            await second.until_said(without_bridge)
            await at.start()
        await second.until_said("the queue is open")
    assert await at.stop() == 0
    assert [post["eventIds"] for post in posts(at)] == [[event]]
    told = [f"news: Reboot {event} {status}" for status in ("Scheduled", "Started", "Completed")]
    assert [line for line in second.lines if line.startswith("news:")] == told
    return second.said


async def test_over_kafka_the_loop_closes(kafka: Broker, tmp_path: Path):
    events = Topic(kafka.bootstrap, await kafka.topic())
    votes = Topic(kafka.bootstrap, await kafka.topic())
    await events.write(b"poison")
    topics = {"events": events.name, "approvals": votes.name}
    async with kafka_stage(tmp_path, kafka.bootstrap, **topics) as at:
        await at.start()
        names = {name.upper(): topic for name, topic in topics.items()}
        said = await loop_closes(at, "kafka", SERVERS=kafka.bootstrap, **names)
    assert f"{READY} on {votes.name}" in said
    assert "cannot read offset 0" not in said, "what was committed does not come again"


async def test_over_mqtt_the_loop_closes_by_the_response_topic(mosquitto, tmp_path: Path):
    root = new_root()
    names = {"SERVER": mosquitto.address, "EVENTS": f"{root}/events/#", "VM": "VM-0"}
    names |= {"APPROVER": root, "APPROVALS": f"{root}/unused"}
    async with (
        mqtt_stage(tmp_path, mosquitto, root, response_topic=approvals_topic(root)) as at,
        mosquitto_sub(mosquitto, approvals_topic(root)) as votes,
    ):
        async with consumer("mqtt", **names) as early:
            await early.until_said("listening")
        await mosquitto_pub(mosquitto, f"{root}/events/x", b"poison")
        await at.start()
        await at.until_said("approvals.connected")
        said = await loop_closes(at, "mqtt", **names)
        [vote] = votes.messages
    assert f"{READY} on {approvals_topic(root)}" in said
    [event] = posts(at)[0]["eventIds"]
    seen = json.loads(vote["payload"])["seen"]
    assert vote["properties"]["correlation-data"] == f"{event}/{seen}"


async def test_over_http_the_loop_closes_though_the_bridge_dies_too(tmp_path: Path):
    [port] = free_ports(1)
    token = {"name": "checkout", "token": "t0p-s3cret"}
    http = {"listen": f"127.0.0.1:{port}", "tokens": [token]}
    names = {"BRIDGE": f"http://127.0.0.1:{port}", "SEB_TOKEN": token["token"]}
    names["PLACE"] = str(tmp_path / "place")
    async with stage(tmp_path, http=http) as at:
        await at.start()
        said = await loop_closes(at, "http", without_bridge="no stream:", **names)
    assert f"{READY}: granted" in said
