"""The compacted topic with what is pending: a newcomer reads it, whatever happened to the bridge."""

import json
import random
from pathlib import Path

import pytest
from support.bridge_process import Stage, announce, stage
from support.kafka_broker import Broker
from support.kafka_reader import Found, read_topic
from support.kafka_stage import Topic, kafka_sink

COMPACTED = {"cleanup.policy": "compact"}
SEED = 20261117
NEW = "Another one"


class Table:
    """What somebody knows who reads the state topic from its beginning, as a KTable would."""

    def __init__(self, servers: str, topic: str) -> None:
        self.servers, self.topic = servers, topic

    async def records(self) -> list[Found]:
        return await read_topic(self.servers, self.topic)

    async def rows(self) -> dict[str, str]:
        """The status of the scheduled event under each key that was not deleted; or its new text."""
        latest = {(one.key or b"").decode(): one for one in await self.records()}
        assert all(not one.headers for one in latest.values() if one.value is None)
        return {
            key: _said(one.envelope["data"]) for key, one in latest.items() if one.value is not None
        }

    async def until(self, expected: dict[str, str]) -> None:
        seen: dict[str, str] = {}
        for _ in range(300):
            if (seen := await self.rows()) == expected:
                return
        pytest.fail(f"expected {expected}, found {seen}")


def _said(data: dict[str, str]) -> str:
    return NEW if data["description"] == NEW else data["status"]


def state_sink(kafka: Broker, events: str, state: str, **more: str) -> dict[str, object]:
    return {"bus": kafka_sink(kafka.bootstrap, events, state_topic=state, **more)}


def key(event: str) -> str:
    return f"{event}/vm-0"


async def lives(at: Stage, rng: random.Random) -> None:
    """One life of the bridge, short: it dies after a delivery, or at any moment."""
    await at.start(faults={"after_send": rng.randint(1, 3)} if rng.random() < 0.7 else {})
    await at.polled(rng.randint(1, 3))
    await at.kill()


@pytest.mark.timeout(180)
async def test_kills_at_any_moment_leave_what_is_pending_and_nothing_else(
    kafka: Broker, tmp_path: Path
):
    kafka.must_be_real("it keeps a compacted topic")
    state = await kafka.topic(2, config=COMPACTED)
    table = Table(kafka.bootstrap, state)
    sinks = state_sink(kafka, await kafka.topic(), state)
    rng = random.Random(SEED)
    async with stage(tmp_path, sinks=sinks, quick=True) as at:
        world = at.world
        stays = announce(at, "stays", started_for=None)
        changes = announce(at, "changes", started_for=None)
        starts = announce(at, "starts", started_for=None)
        announce(at, "ends", started_for=None)
        announce(at, "goes", started_for=None)
        announce(at, "leaves", started_for=None)
        for act in (
            lambda: None,
            lambda: world.update("changes", description=NEW),
            lambda: world.start("ends"),
            lambda: world.cancel("goes"),
            lambda: world.start("starts"),
            lambda: world.update("leaves", resources=["another-vm"]),
            lambda: world.complete("ends"),
        ):
            act()
            await lives(at, rng)
        await at.start()
        pending = {key(stays): "Scheduled", key(changes): NEW, key(starts): "Started"}
        await at.polled(3)
        await table.until(pending)
        assert await at.stop() == 0
    assert await table.rows() == pending


async def test_replays_and_drills_do_not_write_it_and_a_snapshot_writes_all(
    kafka: Broker, tmp_path: Path
):
    kafka.must_be_real("it keeps a compacted topic")
    state, events = await kafka.topic(config=COMPACTED), Topic(kafka.bootstrap, await kafka.topic())
    table = Table(kafka.bootstrap, state)
    sinks = state_sink(kafka, events.name, state, mode="structured")
    async with stage(tmp_path, sinks=sinks) as at:
        stays, ends = announce(at, "stays", started_for=None), announce(at, "ends")
        await at.start()
        await table.until({key(stays): "Scheduled", key(ends): "Scheduled"})
        at.world.cancel("ends")
        await table.until({key(stays): "Scheduled"})
        await at.seb("drill", "--type", "Reboot", "--notice", "2s")
        before = len(await table.records())
        there = len(await events.records())
        assert (await at.seb("sinks", "--replay", "bus"))[0] == 0
        await events.until(lambda records: len(records) >= 2 * there, "the replay")
        assert len(await table.records()) == before
        assert await at.stop() == 0
        await at.start()
        await table.until({key(stays): "Scheduled"})
        await events.until(lambda records: len(records) > 2 * there, "the snapshot")
        assert await at.stop() == 0
    again = [one for one in (await table.records())[before:] if one.value is not None]
    assert [(one.key or b"").decode() for one in again] == [key(stays)]
    assert json.loads(again[0].value or b"")["data"]["eventId"] == stays
