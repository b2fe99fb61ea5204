"""Simulator, bridge, Kafka and back, seen from outside only: kcat at one end, the truth at the other."""

import asyncio
import contextlib
import random
from collections import Counter
from pathlib import Path

from support.bridge_process import Stage, announce, posts
from support.judge import as_lines, judge
from support.kafka_broker import Broker, Cluster
from support.kafka_config import PASSWORDS
from support.kafka_stage import (
    Json,
    Topic,
    approvals,
    checkpoints,
    envelope,
    headers,
    kafka_sink,
    kafka_stage,
    seb,
)
from support.until import until

from bridge.simulator import VM, Scenario, Simulator

POISON = (b"not json", b'{"eventId": 7}', b"[]", b"\xff\xfe", b"x" * 100_000)


async def test_an_approval_of_kcat_starts_what_kcat_read_of(kafka: Broker, tmp_path: Path):
    events = Topic(kafka.bootstrap, await kafka.topic(3))
    votes = Topic(kafka.bootstrap, await kafka.topic(2))
    async with kafka_stage(
        tmp_path, kafka.bootstrap, events=events.name, approvals=votes.name
    ) as at:
        await at.start()
        announce(at, "reboot", started_for=None)
        scheduled = (await events.until_told("scheduled"))["scheduled"]
        event = scheduled["key"]
        await votes.write({"eventId": event, "approver": "orders"})
        await until(lambda: posts(at), "the POST")
        told = await events.until_told("approval.granted", "started", of=event)
        at.world.complete("reboot")
        told |= await events.until_told("completed", of=event)
        assert await at.stop() == 0
        assert [post["eventIds"] for post in posts(at)] == [[event]]
        assert at.simulator.truth[-1]["what"] == "completed"
    for short, record in {"scheduled": scheduled, **told}.items():
        found = headers(record)
        assert found["content-type"] == "application/json"
        assert found["ce_specversion"] == "1.0"
        assert found["ce_type"] == f"azure.scheduledevents.{short}.v1"
        assert found["ce_subject"] == found["ce_partitionkey"] == record["key"] == event
        assert {"ce_id", "ce_source", "ce_time"} <= found.keys()
    assert headers(told["approval.granted"])["ce_causationid"]


async def test_poison_is_passed_once_and_never_again(kafka: Broker, tmp_path: Path):
    kafka.must_be_real("it finds no record by its time, where a source begins")
    events = Topic(kafka.bootstrap, await kafka.topic())
    votes = Topic(kafka.bootstrap, await kafka.topic())
    async with kafka_stage(
        tmp_path, kafka.bootstrap, events=events.name, approvals=votes.name
    ) as at:
        at.configure(approvals=approvals(votes.name, answer_strays=True))
        for body in POISON:
            await votes.write(body)
        event = announce(at, "reboot", started_for="10m")
        await at.start()
        await events.until_told("scheduled")
        await votes.write({"eventId": event})
        await events.until_told("approval.granted")
        assert checkpoints(at) == {f"{votes.name}/0": str(len(POISON) + 1)}
        assert await at.stop() == 0
        await at.start()
        await at.until_said("approvals.connected")
        await votes.write(b"one more")
        await until(
            lambda: checkpoints(at)[f"{votes.name}/0"] == str(len(POISON) + 2), "the checkpoint"
        )
        assert await at.stop() == 0
        assert len(posts(at)) == 1
    records = await events.records()
    refused = [each for each in records if "refused" in headers(each)["ce_type"]]
    assert len(refused) == len(POISON) + 1


async def test_a_bridge_that_never_reached_its_broker_leaves_everything_to_the_next_run(
    lone_kafka: Cluster, tmp_path: Path
):
    lone_kafka.must_be_real("it finds no record by its time, where a source begins")
    events = Topic(lone_kafka.bootstrap, await lone_kafka.topic())
    votes = Topic(lone_kafka.bootstrap, await lone_kafka.topic())
    async with kafka_stage(
        tmp_path, lone_kafka.bootstrap, events=events.name, approvals=votes.name
    ) as at:
        at.configure(stop_grace="500ms")
        await lone_kafka.kill(1)
        await at.start()
        event = announce(at, "reboot", started_for=None)
        await at.polled(2)
        await at.until_said("sink.unavailable")
        await at.until_said("approvals.unavailable")
        assert await at.stop() == 0
        await lone_kafka.restart(1)
        await votes.write({"eventId": event, "approver": "orders"})
        assert posts(at) == []
        await at.start()
        await events.until_told("scheduled", "approval.granted", "started", of=event)
        at.world.complete("reboot")
        await events.until_told("completed", of=event)
        assert await at.stop() == 0
        assert len(posts(at)) == 1


async def test_two_bridges_see_every_approval_and_one_acts(kafka: Broker, tmp_path: Path):
    events = Topic(kafka.bootstrap, await kafka.topic())
    votes = Topic(kafka.bootstrap, await kafka.topic())
    vms = ["front-0", "front-1"]
    scenario = Scenario(vms=[VM(name=name) for name in vms])
    async with Simulator(scenario) as simulator, contextlib.AsyncExitStack() as stack:
        first, second = [
            await stack.enter_async_context(
                Stage(
                    folder(tmp_path / name),
                    simulator,
                    {
                        "source": {"endpoint": simulator.endpoints[name], "poll_interval": "200ms"},
                        "state_dir": str(tmp_path / name / "state"),
                        "sinks": {"bus": kafka_sink(kafka.bootstrap, events.name)},
                        "approvals": approvals(votes.name, require="any", takeover_after="1s"),
                        "http": {"listen": None},
                    },
                )
            )
            for name in vms
        ]
        for each in (first, second):
            await each.start()
            await each.until_said("approvals.connected")
        one = announce(first, "one", resources=vms)
        await events.until_told("scheduled", of=one)
        await votes.write({"eventId": one, "approver": "orders"})
        await events.until_told("approval.granted", of=one)
        await until(
            lambda: checkpoints(first) == checkpoints(second) == {f"{votes.name}/0": "1"},
            "both to have seen it",
        )
        two = announce(first, "two", resources=vms)
        await events.until_told("scheduled", of=two)
        await first.kill()
        await votes.write({"eventId": two, "approver": "orders"})
        await events.until_told("approval.granted", of=two)
        assert await second.stop() == 0
        assert [(post["vm"], post["eventIds"]) for post in posts(first)] == [
            ("front-0", [one]),
            ("front-1", [two]),
        ]


def folder(path: Path) -> Path:
    path.mkdir()
    return path


async def test_each_kind_of_trouble_is_one_line_and_the_right_state(kafka: Broker, tmp_path: Path):
    kafka.must_be_real("it has no users, and takes all")
    open_to_all = await kafka.topic()
    forbidden = await kafka.topic()
    await kafka.allow("alice", forbidden, "DESCRIBE")
    narrow = await kafka.topic(config={"max.message.bytes": "600"})
    login = {"mechanism": "PLAIN", "username": "alice", "password": PASSWORDS["alice"]}
    plain = kafka.address("SASL_PLAINTEXT")
    authority = str(kafka.certificates.authority)
    sinks = {
        "password": kafka_sink(plain, open_to_all, sasl=login | {"password": "wrong"}),
        "expired": kafka_sink(kafka.address("EXPIRED"), open_to_all, tls={"ca": authority}),
        "missing": kafka_sink(kafka.bootstrap, "missing"),
        "forbidden": kafka_sink(plain, forbidden, sasl=login),
        "narrow": kafka_sink(kafka.bootstrap, narrow),
        "bus": kafka_sink(kafka.bootstrap, open_to_all),
    }
    async with kafka_stage(tmp_path, kafka.bootstrap, events=open_to_all) as at:
        at.configure(
            sinks={name: each | {"retry": {"timeout": "2s"}} for name, each in sinks.items()},
            stop_grace="500ms",
        )
        await at.start()
        announce(at, "reboot")
        await Topic(kafka.bootstrap, open_to_all).until_told("scheduled")
        states = await settled(at)
        assert await at.stop() == 0
        said = Counter(each["sink"] for each in at.said("sink.unavailable"))
        dead = at.said("sink.dead_letter")
    why = {name: (state["state"], state["error"] or "") for name, state in states.items()}
    assert why["bus"] == ("connected", "")
    assert {name for name, (state, _) in why.items() if state == "unavailable"} == set(said)
    assert said == dict.fromkeys(["password", "expired", "missing", "forbidden"], 1)
    assert "refuses the login" in why["password"][1]
    assert "certificate has expired" in why["expired"][1]
    assert "topic missing does not exist" in why["missing"][1]
    assert f"does not allow this client to write topic {forbidden}" in why["forbidden"][1]
    assert why["narrow"][0] == "connected"
    assert states["narrow"]["dead"] == len(dead) > 0
    assert all(
        f"topic {narrow} accepts fewer (max.message.bytes)" in each["reason"] for each in dead
    )


async def settled(at: Stage) -> dict[str, Json]:
    """What `seb sinks` says when every sink has had its try."""
    while True:
        found = {each["name"]: each for each in (await seb(at, "sinks"))["sinks"]}
        tried = all(s["state"] == "unavailable" or s["waiting"] == 0 for s in found.values())
        if tried and "untried" not in {each["state"] for each in found.values()}:
            return found
        await asyncio.sleep(0.2)


async def flow(at: Stage) -> None:
    """Reboots without end, each announced, started and completed within two seconds."""
    for number in range(100_000):
        announce(at, f"event-{number}", notice="1s", started_for="500ms")
        await asyncio.sleep(0.1)


async def live_through(cluster: Cluster, folder: Path, rounds: int, seed: int) -> None:
    rng = random.Random(seed)
    config = {"min.insync.replicas": "2"}
    topics = [
        Topic(cluster.bootstrap, await cluster.topic(3, replication=3, config=config))
        for _ in range(2)
    ]
    async with kafka_stage(folder, cluster.bootstrap, events=topics[0].name) as at:
        at.configure(
            sinks={
                "bus": kafka_sink(cluster.bootstrap, topics[0].name),
                "other": kafka_sink(cluster.bootstrap, topics[1].name, mode="structured"),
            },
            stop_grace="30s",
        )
        await at.start()
        flowing = asyncio.create_task(flow(at))
        for number in range(rounds):
            await cluster.kill(number % 3 + 1)
            await asyncio.sleep(rng.uniform(0.5, 2))
            if number % 3 != 0:
                await at.kill()
                await at.start()
            await cluster.restart(number % 3 + 1)
            await asyncio.sleep(rng.uniform(0, 1))
        flowing.cancel()
        calm = [announce(at, f"calm-{n}", notice="1s", started_for="500ms") for n in range(10)]
        await until(lambda: not at.world.entries, "all events to end")
        await at.polled(3)
        assert await at.stop() == 0
        assert at.said("bridge.stopped")[0]["undelivered"] == 0
        records = [await topic.records() for topic in topics]
        files = [
            as_lines(map(envelope, found), folder / f"{n}.jsonl") for n, found in enumerate(records)
        ]
        truth = [each for each in at.simulator.truth if "eventId" in each]
        assert len(truth) > 20 * rounds
        assert judge(at.simulator.truth, at.shown, files) == []
    for found in records:
        assert [each["key"] for each in found if each["key"] in calm] != []
        copies = Counter(each["payload"] for each in found if each["key"] in calm)
        assert set(copies.values()) == {1}, "there are duplicates where nothing was killed"


async def test_brokers_and_bridge_are_killed_in_turn_and_nothing_is_lost(
    kafka_cluster: Cluster, tmp_path: Path
):
    kafka_cluster.must_be_real("it keeps no replicas")
    await live_through(kafka_cluster, tmp_path, rounds=2, seed=1)
