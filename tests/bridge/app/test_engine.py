"""The moving parts together: from a vote to Azure and to a sink, through reloads and a stop."""

import asyncio
import json
import time
from contextlib import asynccontextmanager

import pytest
from support.bridge import group
from support.third_party_source import register
from support.until import until

from bridge.app.engine import Engine
from bridge.app.reload import Reload, WebAccess
from bridge.config import load
from bridge.delivery.workers import SinkWorkers
from bridge.journal import Journal
from bridge.metadata.client import Metadata
from bridge.runtime.identity import Identity
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import Status


@pytest.fixture(autouse=True)
def tail():
    undo = register()
    yield
    undo()


class Bench:
    """An engine on a configuration file, with an approval topic and a sink to read."""

    def __init__(self, folder, made):
        self.folder, self.world, self.group = folder, made.world, made
        self.topic, self.out = folder / "topic", folder / "out.jsonl"
        self.topic.touch()

    def config(self, **approvals):
        source = {"type": "tail", "path": str(self.topic), "trust": "transport"}
        text = {
            "source": {"endpoint": self.group.simulator.endpoint, "poll_interval": "200ms"},
            "state_dir": str(self.folder),
            "sinks": {"out": {"type": "file", "path": str(self.out)}},
            "http": {"listen": None},
            "approvals": {"from": {"bus": source}, "require": "any", **approvals},
        }
        path = self.folder / "config.yaml"
        path.write_text(json.dumps(text))
        return load(path, {})

    def say(self, name, **said):
        key = self.world.find(name).event.event_id
        with self.topic.open("a") as file:
            file.write(json.dumps({"eventId": key, **said}) + "\n")

    def told(self, kind):
        text = self.out.read_text() if self.out.exists() else ""
        found = [json.loads(line) for line in text.splitlines()]
        return [one for one in found if one["type"] == f"azure.scheduledevents.{kind}.v1"]

    @asynccontextmanager
    async def engine(self, **approvals):
        config = self.config(**approvals)
        journal = Journal(self.folder / "journal.db")
        await journal.open()
        status = Status(started=time.monotonic())
        runtime = Runtime(config, journal, Identity(config, journal), status, "1", "boot-1")
        try:
            async with asyncio.TaskGroup() as tasks:
                made = Engine(runtime, tasks)
                await made.start()
                await made.listen()
                yield made
                assert await made.stop(5.0) == 0
        finally:
            await journal.close()


async def reload(engine, new):
    """As SIGHUP does it, with the control socket and without HTTP."""
    folder = engine.runtime.config.state_dir
    async with WebAccess(engine.runtime, folder) as web:
        await Reload(engine.runtime, engine, web, lambda: new).apply()
    assert engine.runtime.config is new


@pytest.fixture
async def bench(tmp_path):
    async with group(tmp_path) as made:
        yield Bench(tmp_path, made)


async def test_a_vote_is_taken_azure_is_notified_and_the_outcome_is_published(bench):
    bench.world.create(name="e", type="Reboot", notice="1h", started_for="1s")
    async with bench.engine():
        bench.say("e", approver="orders", id="a-1")
        await until(lambda: bench.told("completed"))
    assert len(bench.group.posts()) == 1
    [granted] = bench.told("approval.granted")
    assert granted["causationid"] == "a-1"
    order = [bench.told(kind)[0]["time"] for kind in ("scheduled", "approval.granted", "started")]
    assert order == sorted(order)


async def test_a_reload_brings_other_rules_and_other_sources(bench):
    bench.world.create(name="e", type="Reboot", notice="1h", resources=["vm-0", "vm-1"])
    async with bench.engine(require="each-resource") as engine:
        bench.say("e", id="1", resource="vm-0")
        await until(lambda: bench.told("approval.recorded"))
        new = bench.config(**{"from": {}})
        await reload(engine, new)
        assert engine.runtime.status.listeners == {}
        engine.runtime.journal.announce()
        await until(lambda: bench.told("approval.granted"))
    assert len(bench.group.posts()) == 1


async def test_a_new_poller_posts_what_the_old_one_no_longer_can(bench):
    bench.world.create(name="e", type="Reboot", notice="1h")
    async with bench.engine() as engine:
        await until(lambda: bench.told("scheduled"))
        old = engine.runtime.config
        source = old.source.model_copy(update={"poll_interval": 0.3})
        new = old.model_copy(update={"source": source})
        await reload(engine, new)
        bench.say("e")
        await until(lambda: bench.told("approval.granted"))


async def test_what_was_voted_before_a_restart_is_granted_after_it_without_any_source(bench):
    bench.world.create(name="e", type="Reboot", notice="1h", resources=["vm-0", "vm-1"])
    async with bench.engine(require="each-resource"):
        bench.say("e", resource="vm-0")
        await until(lambda: bench.told("approval.recorded"))
    async with bench.engine(**{"from": {}}):
        await until(lambda: bench.told("approval.granted"))


async def test_a_refused_start_request_triggers_an_immediate_poll(bench):
    """The next poll is an hour away, but the end of the event is known in a moment."""
    bench.world.create(name="e", type="Reboot", notice="1h")
    config = bench.config()
    source = config.source.model_copy(update={"poll_interval": 3600.0})
    async with bench.engine() as engine:
        await until(lambda: bench.told("scheduled"))
        new = config.model_copy(update={"source": source})
        await reload(engine, new)
        await until(lambda: engine._poller._state.tracked)
        bench.world.fault("status", methods=["POST"], status=400)
        bench.say("e")
        bench.world.cancel("e")
        await until(lambda: bench.told("approval.failed"))


async def test_azure_is_polled_before_the_sinks_start(bench, monkeypatch):
    order = []

    def noted(kind, name):
        original = getattr(kind, name)

        async def call(self, *args):
            order.append(name)
            return await original(self, *args)

        monkeypatch.setattr(kind, name, call)

    noted(Metadata, "fetch")
    noted(SinkWorkers, "configure")
    async with bench.engine():
        await until(lambda: bench.told("source.snapshot"))
    assert order[:2] == ["fetch", "configure"]
