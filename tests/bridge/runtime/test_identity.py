import json
import logging
import time

import pytest
from support.journal_tools import NOW, about, opened, tracking

from bridge.config import Config
from bridge.core.model import Instance
from bridge.journal import Journal
from bridge.metadata.budget import Budget
from bridge.metadata.client import Metadata
from bridge.runtime.identity import Identity, place
from bridge.simulator import VM, Scenario, Simulator

HERE = VM(name="FrontEnd_IN_0", tags={"team": "orders", "cost": "7"}, zone="2")


@pytest.fixture
async def simulator():
    async with Simulator(Scenario(vms=[HERE])) as made:
        yield made


@pytest.fixture
async def metadata(simulator):
    async with Metadata(simulator.endpoint, "2020-07-01", budget=Budget(1000)) as made:
        yield made


@pytest.fixture
async def journal(tmp_path):
    async with opened(tmp_path / "journal.db", "sink") as made:
        yield made


def identity(journal: Journal, **source) -> Identity:
    return Identity(Config.model_validate({"source": source}), journal)


async def kept(journal: Journal, name: str) -> str | None:
    return await journal.run(lambda store: store.recall(name))


def lines(caplog) -> list[str]:
    return [r.message for r in caplog.records if r.name == "bridge.runtime.identity"]


async def test_the_identity_is_unknown_at_first(journal):
    me = identity(journal)
    assert me.vm_name is None
    assert me.observer.name == "unknown"
    assert set(me.place.names.values()) == {None}


async def test_instance_metadata_gives_the_identity(journal, metadata):
    me = identity(journal, tags=["team"], labels={"site": "plant-7"})
    await me.learn(metadata)
    assert me.vm_name == HERE.name
    assert me.place.names["vm_name"] == me.place.names["observer"] == HERE.name
    assert me.place.names["resource_group"] == "simulated"
    described = me.observer.described(affected=True)
    assert (described["tags"], described["labels"]) == ({"team": "orders"}, {"site": "plant-7"})
    assert described["zone"] == "2"


async def test_sinks_are_woken_immediately(journal, metadata):
    with journal.news() as news:
        await identity(journal).learn(metadata)
        assert news.is_set()


async def test_it_is_asked_once_in_a_while(journal, metadata, simulator):
    me = identity(journal)
    await me.learn(metadata)
    simulator.world.fault("status", status=500, paths=["instance"])
    await me.learn(metadata)
    assert me.vm_name == HERE.name
    assert simulator.world.faults.live[0].left is None


async def test_a_configured_name_wins(journal, metadata):
    me = identity(journal, vm_name="another")
    assert me.vm_name == "another"
    await me.learn(metadata)
    assert (me.vm_name, me.instance.name) == ("another", HERE.name)


async def test_the_identity_is_remembered(journal, metadata):
    await identity(journal).learn(metadata)
    me = identity(journal)
    await me.recall()
    assert me.vm_name == HERE.name
    assert me.instance.tags == dict(HERE.tags)
    assert await kept(journal, "vm_id") == me.instance.vm_id


async def test_a_remembered_identity_is_not_written_again(journal, metadata, caplog):
    caplog.set_level(logging.INFO, "bridge")
    await identity(journal).learn(metadata)
    me = identity(journal)
    await me.recall()
    changes = await journal.run(lambda store: store.connection.total_changes)
    await me.learn(metadata)
    assert await journal.run(lambda store: store.connection.total_changes) == changes
    assert lines(caplog) == ["instance.identified"]


@pytest.mark.parametrize("text", ["no json", "[]", '{"color": "red"}', "3"])
async def test_an_unreadable_memory_is_discarded(journal, metadata, caplog, text):
    await journal.run(lambda store: store.remember(instance=text))
    me = identity(journal)
    await me.recall()
    assert me.instance == Instance()
    assert lines(caplog) == ["instance.discarded"]
    await me.learn(metadata)
    assert json.loads(await kept(journal, "instance") or "")["name"] == HERE.name


async def test_a_failure_changes_nothing_and_is_logged_once(journal, metadata, simulator, caplog):
    simulator.world.fault("status", status=500, paths=["instance"], count=2)
    me = identity(journal)
    for _ in range(2):
        await me.learn(metadata)
        me._ask_at = 0.0
    assert me.vm_name is None
    (said,) = [r for r in caplog.records if r.name == "bridge.runtime.identity"]
    assert (said.message, said.scope) == ("instance.unknown", "all, until the VM's name is known")
    await me.learn(metadata)
    assert me.vm_name == HERE.name


async def test_a_failure_with_a_configured_name_leaves_the_scope_alone(
    journal, metadata, simulator, caplog
):
    simulator.world.fault("status", status=500, paths=["instance"])
    await identity(journal, vm_name="mine").learn(metadata)
    assert [r.scope for r in caplog.records if r.name == "bridge.runtime.identity"] == [
        "as configured"
    ]


async def test_a_failed_request_is_repeated_soon_but_not_immediately(journal, metadata, simulator):
    simulator.world.fault("status", status=500, paths=["instance"], count=1)
    me = identity(journal)
    await me.learn(metadata)
    await me.learn(metadata)
    assert me.vm_name is None


async def test_a_request_that_keeps_failing_is_sent_less_often(journal, metadata, simulator):
    simulator.world.fault("status", status=500, paths=["instance"])
    me = identity(journal)
    waits = []
    for _ in range(8):
        me._ask_at = 0.0
        await me.learn(metadata)
        waits.append(round(me._ask_at - time.monotonic()))
    assert waits == [15, 30, 60, 120, 240, 480, 900, 900]


async def test_another_vms_journal_is_set_aside(journal, metadata):
    await journal.claim("another-vm")
    await journal.commit(tracking("A"), [about("A")], NOW)
    me = identity(journal)
    await me.learn(metadata)
    assert journal.origin == "quarantined"
    assert await kept(journal, "vm_id") == me.instance.vm_id
    assert json.loads(await kept(journal, "instance") or "")["name"] == HERE.name


async def test_a_journal_that_was_replaced_learns_who_we_are(journal, metadata):
    me = identity(journal)
    await me.learn(metadata)
    await journal.run(lambda s: s.connection.execute("INSERT INTO tracked VALUES ('A', 'x')"))
    await journal.load()
    assert await kept(journal, "vm_id") is None
    await me.learn(metadata)
    assert await kept(journal, "vm_id") == me.instance.vm_id
    assert json.loads(await kept(journal, "instance") or "")["name"] == HERE.name


async def test_an_instance_without_an_id_claims_nothing(journal):
    me = identity(journal)
    await me._accept(Instance(name="nameless"))
    assert await kept(journal, "vm_id") is None
    assert me.vm_name == "nameless"


def test_a_place_has_every_name_that_templates_may_use():
    here = place("vm", Instance(vm_id="1", subscription="s", resource_group="g", location="l"))
    assert tuple(here.names) == here.NAMES
    assert None not in here.names.values()
