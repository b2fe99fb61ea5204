"""A sink's approval as this VM's vote: when it is taken, and that it counts once."""

import asyncio
import json
import time

import pytest
from support.bridge import group, make_config
from support.until import until

from bridge.app.engine import Engine
from bridge.journal import Journal
from bridge.journal.views import after
from bridge.journal.votes import votes_ever
from bridge.plugins import Unavailable
from bridge.runtime.identity import Identity
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import Status


@pytest.fixture
async def engine(tmp_path):
    """An engine that has not started, on a VM with one announced event."""
    async with group(tmp_path) as made, asyncio.TaskGroup() as tasks:
        made.world.create(name="e", type="Reboot", notice="1h")
        config = make_config(tmp_path, made.simulator.endpoint, {"poll_interval": "200ms"})
        journal = Journal(tmp_path / "journal.db")
        await journal.open()
        status = Status(started=time.monotonic())
        runtime = Runtime(config, journal, Identity(config, journal), status, "1", "boot-1")
        engine = Engine(runtime, tasks)
        yield engine
        await engine.stop(0)
        await journal.close()


async def announced(engine):
    journal = engine.runtime.journal
    while True:
        rows = await journal.run(lambda store: after(store, 0))
        found = [event for _, event in rows if ".scheduled." in event.type]
        if found:
            return found[0]
        await asyncio.sleep(0.01)


async def test_a_vote_sent_before_the_source_connects_is_taken_once(engine):
    await engine.start()
    event = await announced(engine)
    voting = asyncio.create_task(engine._vote(event, "drain"))
    await asyncio.sleep(0.05)
    assert not voting.done()
    await engine.listen()
    async with asyncio.timeout(10):
        await voting
        await engine._vote(event, "drain")
    store = engine.runtime.journal.run
    [vote] = await store(lambda store: votes_ever(store, event.key))
    assert (vote.approver, vote.via, vote.verified) == ("sink:drain", "sink", True)
    assert vote.resource == json.loads(event.body)["data"]["observer"]["vm"]
    told = engine.runtime.status.approvals
    await until(lambda: told.get(("granted", "")) == 1)


async def test_a_single_poll_takes_no_votes_and_says_so(engine):
    await engine.once()
    with pytest.raises(Unavailable, match="does not accept approvals yet"):
        await engine._vote(await announced(engine), "drain")
