import asyncio
import time
from datetime import UTC, datetime

import pytest
from support.deliveries import comes_to
from support.journal_tools import about, delivered, everything
from support.recording_sink import RecordingSink, at_work, dispatcher_for
from support.served_bridge import config, runtime

from bridge.journal import Settlement, views
from bridge.journal.cursors import dead_letters
from bridge.journal.store import Store
from bridge.plugins import Rejected
from bridge.runtime.runtime import Runtime

WHO = {"actor": "ops", "via": "control"}


@pytest.fixture
async def bridge(tmp_path):
    async with runtime(config(tmp_path)) as made:
        yield made


async def audits(bridge: Runtime) -> list[dict]:
    rows = await bridge.journal.run(lambda store: views.after(store, 0, 1000))
    return [e.data for _, e in rows if e.type == "azure.scheduledevents.bridge.audited.v1"]


async def kill(bridge: Runtime, name: str = "A") -> str:
    await bridge.journal.append([about(name)], time.time())
    verdict = Settlement(f"{name}/1", "dead", "too pink")
    await bridge.journal.settle("bus", [verdict], time.time())
    letters = await bridge.journal.run(dead_letters)
    return letters[-1].id


async def test_an_action_is_recorded_with_actor_and_channel(bridge):
    await bridge.audit("token.refused", actor="ops", via="http", detail={"count": 2})
    assert await audits(bridge) == [
        {
            "action": "token.refused",
            "actor": "ops",
            "via": "http",
            "address": None,
            "outcome": "failure",
            "vm": bridge.identity.vm_name,
            "vmId": bridge.identity.instance.vm_id,
            "detail": {"count": 2},
        }
    ]


async def test_a_burst_of_actions_loses_none(bridge):
    crowd = (bridge.audit("a", actor=str(n), via="test", detail={}) for n in range(30))
    await asyncio.gather(*crowd)
    assert sorted(int(e["actor"]) for e in await audits(bridge)) == list(range(30))


async def test_a_process_that_starts_in_the_same_second_loses_none(bridge):
    for n in range(5):
        bridge._audited = datetime.min.replace(tzinfo=UTC)
        await bridge.audit("a", actor=str(n), via="test", detail={})
    assert len(await audits(bridge)) == 5


async def test_a_replayed_dead_letter_is_offered_again_and_audited(bridge):
    letter = await kill(bridge)
    with bridge.journal.news() as news:
        assert await bridge.replay(letter, **WHO)
        assert news.is_set()
    assert "A/1" in await bridge.journal.run(lambda store: everything(store, "bus"))
    (said,) = await audits(bridge)
    assert said["action"] == "dead-letter.replayed"
    assert said["detail"] == {"deadLetter": letter, "cloudEvent": "A/1", "reason": "too pink"}


async def test_a_dropped_dead_letter_is_gone_and_audited(bridge):
    letter = await kill(bridge)
    assert await bridge.drop(letter, **WHO)
    assert await bridge.journal.run(dead_letters) == []
    assert "A/1" not in await bridge.journal.run(lambda store: everything(store, "bus"))
    assert [said["action"] for said in await audits(bridge)] == ["dead-letter.dropped"]


async def test_an_unknown_dead_letter_can_neither_be_replayed_nor_dropped(bridge):
    assert not await bridge.replay("bus:77", **WHO)
    assert not await bridge.drop("bus:77", **WHO)
    assert await bridge.replay_sink("stranger", **WHO) is None
    assert await audits(bridge) == []


async def test_a_sink_gets_everything_again(bridge):
    await bridge.journal.append([about("A"), about("B")], time.time())
    await bridge.journal.settle("bus", delivered("A/1", "B/1"), time.time())
    assert await bridge.replay_sink("bus", **WHO) == 2
    left = await bridge.journal.run(lambda store: everything(store, "bus"))
    assert left[:2] == ["A/1", "B/1"]
    (said,) = await audits(bridge)
    assert (said["action"], said["detail"]) == ("sink.replayed", {"sink": "bus", "rows": 2})


async def waiting(bridge: Runtime, sink: str) -> list[str]:
    """The kinds of audit that wait for the sink."""
    rows = await bridge.journal.run(lambda store: store.unsettled(sink, 10, frozenset()))
    return [row.event.data["action"] for row in rows if row.event.kind == "bridge.audited"]


@pytest.mark.parametrize("act", ["drop", "replay", "replay_sink", "resume_sink"])
async def test_an_audit_about_a_sink_goes_to_the_others(bridge, act):
    letter = await kill(bridge)
    bridge.status.sinks["bus"].state = "stopped"
    await getattr(bridge, act)("bus" if act.endswith("sink") else letter, **WHO)
    assert await waiting(bridge, "bus") == []
    assert len(await waiting(bridge, "pager")) == 1


async def test_a_replay_of_the_sink_does_not_bring_audits_about_itself(bridge):
    await bridge.drop(await kill(bridge), **WHO)
    assert await bridge.replay_sink("bus", **WHO) == 1
    assert await waiting(bridge, "bus") == []


async def test_the_dead_letters_of_a_sink_that_rejects_everything_can_be_cleared(bridge):
    letters = [await kill(bridge, name) for name in "AB"]
    journal, refusing = bridge.journal, RecordingSink(lambda _: Rejected("too pink"))
    async with at_work(dispatcher_for(journal, refusing, name="bus")):
        for letter in letters:
            await bridge.replay(letter, **WHO)
            await comes_to(journal, [], "bus")
        assert [each.id for each in await journal.run(dead_letters)] == letters
        for letter in letters:
            await bridge.drop(letter, **WHO)
            await comes_to(journal, [], "bus")
    assert await journal.run(dead_letters) == []


@pytest.mark.parametrize("act", ["drop", "replay", "replay_sink"])
async def test_an_action_and_its_audit_are_one_commit(bridge, act, monkeypatch):
    letter, commits = await kill(bridge), []
    original = Store.transaction

    def transaction(store, **how):
        commits.append(store)
        return original(store, **how)

    monkeypatch.setattr(Store, "transaction", transaction)
    await getattr(bridge, act)("bus" if act == "replay_sink" else letter, **WHO)
    assert len(commits) == 1
