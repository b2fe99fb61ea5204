"""The desk: what is taken, what waits, what is refused, who speaks, and when nothing may be taken."""

import asyncio
import json
import logging

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.bridge import group

from bridge.approvals.assessment import MOST_WAITING
from bridge.common.errors import Unavailable
from bridge.journal.cursors import checkpoints
from bridge.journal.grants import mark
from bridge.journal.votes import early, votes
from bridge.plugins import Delivery
from bridge.policy.message import APPROVE

EACH = {"require": "each-resource"}


@pytest.fixture
async def two(tmp_path):
    """Two VMs, and an event that is about both of them."""
    async with group(tmp_path, "vm-0", "vm-1") as made:
        made.world.create(name="e", type="Reboot", notice="1h", resources=["vm-0", "vm-1"])
        yield made


def event_id(made, name="e"):
    return made.world.find(name).event.event_id


async def cast(bridge, key, life=1):
    return await bridge.journal.run(lambda store: votes(store, key.upper(), life))


def counted(bridge, outcome, reason=""):
    return bridge.runtime.status.approvals.get((outcome, reason), 0)


async def test_a_vote_is_in_the_journal_when_it_was_taken_and_who_leads_says_so(two):
    bridge = await two.bridge(**EACH)
    key = event_id(two)
    await bridge.hear(key.lower(), resource="VM-0", approver="orders", reason="drained", id="a-1")
    [vote] = await cast(bridge, key)
    assert (vote.approver, vote.resource, vote.via, vote.verified) == (
        "orders",
        "VM-0",
        "bus",
        False,
    )
    [told] = await bridge.told()
    assert told["type"] == "azure.scheduledevents.approval.recorded.v1"
    assert told["data"]["votes"] == {"have": ["vm-0"], "missing": ["vm-1"], "holds": []}
    assert told["data"]["wouldGrant"] is False
    assert two.posts() == []


async def test_only_the_bridge_on_the_first_vm_speaks_and_the_others_count_all_the_same(two):
    second = await two.bridge("vm-1", **EACH)
    await second.hear(event_id(two), resource="vm-0")
    await second.hear(event_id(two))
    assert await second.told() == []
    assert len(await cast(second, event_id(two))) == 1
    assert counted(second, "recorded") == counted(second, "refused", "resource-required") == 1


async def test_for_terminate_each_bridge_speaks(two):
    two.world.create(name="t", type="Terminate", notice="1h", resources=["vm-0", "vm-1"])
    second = await two.bridge("vm-1", **EACH)
    await second.hear(event_id(two, "t"), resource="vm-1")
    assert await second.became() == [("recorded", None)]


async def test_the_vote_that_is_enough_is_not_recorded_for_it_will_be_granted(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two))
    assert await bridge.told() == []
    assert len(await cast(bridge, event_id(two))) == 1


async def test_a_dry_run_says_that_it_would_grant(two):
    bridge = await two.bridge(dry_run=True)
    await bridge.hear(event_id(two))
    [told] = await bridge.told()
    assert (told["data"]["dryRun"], told["data"]["wouldGrant"]) == (True, True)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({}, "resource-required"),
        ({"resource": "elsewhere"}, "not-approvable"),
        ({"resource": "vm-0", "approver": "b", "_identity": "a"}, "unauthorized"),
    ],
)
async def test_what_cannot_count_is_refused_with_its_reason(two, said, reason):
    bridge = await two.bridge(**EACH)
    await bridge.hear(event_id(two), **said)
    assert await bridge.became() == [("refused", reason)]
    assert await cast(bridge, event_id(two)) == []


async def test_what_the_transport_proves_is_the_approver(two):
    bridge = await two.bridge(**EACH)
    await bridge.hear(event_id(two), resource="vm-0", _identity="cn=orders")
    [vote] = await cast(bridge, event_id(two))
    assert (vote.approver, vote.verified) == ("cn=orders", True)


async def test_a_vote_for_what_has_started_comes_too_late(two):
    bridge = await two.bridge(**EACH)
    two.world.start("e")
    await bridge.poll()
    await bridge.hear(event_id(two), resource="vm-0")
    assert await bridge.became() == [("refused", "expired")]


async def test_a_vote_for_what_is_over_is_a_stray(two):
    bridge = await two.bridge(answer_strays=True)
    two.world.cancel("e")
    key = bridge.poller._state.tracked.keys()
    [key] = key
    await bridge.poll()
    await bridge.hear(key)
    assert await bridge.became() == [("refused", "expired")]


async def test_a_hold_says_that_azure_will_not_wait(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two), decision="hold")
    [told] = await bridge.told()
    assert told["data"]["votes"]["holds"] == ["bus"]
    assert told["data"]["detail"] == (
        "A hold does not stop Azure: the event goes ahead at notBefore."
    )


async def test_a_hold_after_azure_was_told_is_refused_and_an_approval_needs_no_answer(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two))
    await bridge.consider()
    await bridge.hear(event_id(two), decision="hold", approver="late")
    await bridge.hear(event_id(two), approver="later")
    assert await bridge.became() == [("granted", None), ("refused", "not-approvable")]


# --- said twice ----------------------------------------------------------------------------------


async def test_a_message_that_comes_again_changes_nothing(two):
    bridge = await two.bridge(**EACH)
    for _ in range(2):
        await bridge.hear(event_id(two), resource="vm-0", id="a-1")
    assert len(await bridge.told()) == 1
    assert counted(bridge, "dropped", "duplicate") == 1


async def test_an_equal_vote_changes_nothing_and_keeps_its_time(two):
    bridge = await two.bridge(**EACH)
    await bridge.hear(event_id(two), resource="vm-0", id="a-1")
    before = await cast(bridge, event_id(two))
    await bridge.hear(event_id(two), resource="vm-0", id="a-2")
    assert await cast(bridge, event_id(two)) == before
    assert len(await bridge.told()) == 1
    assert counted(bridge, "dropped", "unchanged") == 1


async def test_a_later_vote_of_the_same_voice_takes_the_place_of_the_former(two):
    bridge = await two.bridge(**EACH)
    for number, decision in enumerate(["approve", "hold", "release"]):
        await bridge.hear(
            event_id(two), resource="vm-0", decision=decision, _position=f"t/0/{number}"
        )
    assert [vote.decision for vote in await cast(bridge, event_id(two))] == ["release"]
    assert len(await bridge.told()) == 3


async def test_an_older_offset_never_replaces_a_newer_one(two):
    bridge = await two.bridge(**EACH)
    await bridge.hear(event_id(two), resource="vm-0", decision="hold", _position="t/0/9")
    await bridge.hear(event_id(two), resource="vm-0", _position="t/0/8")
    assert [vote.decision for vote in await cast(bridge, event_id(two))] == ["hold"]
    assert counted(bridge, "dropped", "older") == 1


async def test_azures_own_body_votes_on_several_events(two):
    two.world.create(name="f", type="Freeze", notice="1h")
    bridge = await two.bridge(dry_run=True)
    ids = [event_id(two), event_id(two, "f")]
    await bridge.hear(StartRequests=[{"EventId": one} for one in ids])
    assert {one["data"]["eventId"] for one in await bridge.told()} == set(ids)


# --- early ---------------------------------------------------------------------------------------


async def test_a_vote_that_comes_before_its_event_waits_and_then_counts(two):
    bridge = await two.bridge(dry_run=True)
    key = two.world.event_id("soon")
    await bridge.hear(key.lower())
    assert await bridge.told() == []
    await bridge.consider()
    assert await bridge.told() == []
    two.world.create(name="soon", type="Freeze", notice="1h")
    await bridge.poll()
    await bridge.consider()
    assert await bridge.became() == [("recorded", None)]
    assert await bridge.journal.run(early) == []


async def test_what_waits_is_counted_before_what_comes_later(two):
    bridge = await two.bridge(dry_run=True)
    key = two.world.event_id("soon")
    await bridge.hear(key, decision="hold")
    two.world.create(name="soon", type="Freeze", notice="1h")
    await bridge.poll()
    await bridge.hear(key, decision="release")
    await bridge.consider()
    assert [vote.decision for vote in await cast(bridge, key)] == ["release"]


async def test_a_vote_for_what_never_shows_is_a_stray_after_its_grace(two):
    bridge = await two.bridge(early_grace="100ms", answer_strays=True)
    await bridge.hear("never", id="a-1")
    await bridge.hear("never", id="a-1")
    await asyncio.sleep(0.15)
    await bridge.consider()
    [told] = await bridge.told()
    assert (told["data"]["reason"], told["data"]["eventId"]) == ("unknown-event", "NEVER")
    assert told["subject"] == "NEVER"


async def test_no_more_than_a_crowd_may_wait(two, monkeypatch):
    monkeypatch.setattr("bridge.approvals.assessment.MOST_WAITING", 3)
    assert MOST_WAITING == 1000
    bridge = await two.bridge()
    for number in range(5):
        await bridge.hear(f"never-{number}")
    assert len(await bridge.journal.run(early)) == 3
    assert counted(bridge, "refused", "rate-limited") == 2


# --- strays and strangers ------------------------------------------------------------------------


async def test_strays_are_counted_and_logged_once_a_minute_but_not_answered(two, caplog):
    bridge = await two.bridge()
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            await bridge.intake.take(Delivery(b"not JSON %d" % number), "bus")
    assert counted(bridge, "refused", "malformed") == 3
    assert [record.message for record in caplog.records] == ["approval.stray"]
    assert await bridge.told() == []


async def test_strays_are_answered_where_that_is_asked_for(two):
    bridge = await two.bridge(answer_strays=True)
    await bridge.intake.take(Delivery(b"{}", position="t/0/3"), "bus")
    [told] = await bridge.told()
    assert (told["data"]["reason"], told["data"]["approvalId"]) == ("malformed", "t/0/3")
    assert told["subject"] == "vm-0"


async def test_what_else_we_publish_is_counted_and_never_answered(two):
    bridge = await two.bridge(answer_strays=True)
    ours = {"specversion": "1.0", "type": "azure.scheduledevents.scheduled.v1"}
    await bridge.intake.take(Delivery(json.dumps(ours).encode()), "bus")
    assert counted(bridge, "dropped", "not-an-approval") == 1
    assert await bridge.told() == []


async def test_what_its_source_wants_unread_is_counted_and_let_go(two):
    bridge = await two.bridge(**EACH)
    key = event_id(two)
    body = json.dumps({"eventId": key, "resource": "vm-0"}).encode()
    delivery = Delivery(body, checkpoint=("place", "7"), unread="retained")
    await bridge.intake.take(delivery, "bus")
    assert counted(bridge, "dropped", "retained") == 1
    assert await cast(bridge, key) == []
    kept = await bridge.journal.run(lambda store: checkpoints(store, "bus"))
    assert kept == {"place": "7"}


async def test_what_other_vms_act_on_is_none_of_our_business(two):
    two.world.create(name="theirs", type="Freeze", notice="1h", resources=["vm-1"])
    bridge = await two.bridge(answer_strays=True)
    await bridge.hear(event_id(two, "theirs"))
    assert counted(bridge, "dropped", "not-ours") == 1
    assert await cast(bridge, event_id(two, "theirs")) == []
    assert await bridge.told() == []


async def test_a_checkpoint_moves_with_whatever_came_poison_too(two):
    bridge = await two.bridge()
    for number, body in enumerate([b"\xff", b"{}", json.dumps({"type": APPROVE}).encode()]):
        await bridge.intake.take(Delivery(body, checkpoint=("t/0", str(number + 1))), "bus")
        found = await bridge.journal.run(lambda store: checkpoints(store, "bus"))
        assert found == {"t/0": str(number + 1)}


# --- when the journal cannot be written ----------------------------------------------------------


async def test_nothing_is_taken_while_the_journal_cannot_be_written(two):
    bridge = await two.bridge()
    bridge.journal._store.connection.execute("PRAGMA query_only = ON")
    for _ in range(2):
        with pytest.raises(Unavailable, match="cannot be written"):
            await bridge.hear(event_id(two), id="a-1")
    await bridge.consider()
    assert two.posts() == []
    assert await bridge.journal.repair()
    await bridge.hear(event_id(two), id="a-1")
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_after_a_grant_of_an_earlier_life_the_new_life_is_voted_on_anew(two):
    bridge = await two.bridge(**EACH)
    key = event_id(two)
    await bridge.journal.run(lambda store: mark(store, (key, 1), "granted", (), 0.0))
    two.world.cancel("e")
    await bridge.poll()
    two.world.create(name="e", type="Reboot", notice="1h", resources=["vm-0", "vm-1"])
    await bridge.poll()
    await bridge.hear(key, resource="vm-0", decision="hold")
    assert [vote.decision for vote in await cast(bridge, key, 2)] == ["hold"]


# --- whatever comes ------------------------------------------------------------------------------


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.binary(max_size=60)
            | st.dictionaries(st.sampled_from(["eventId", "decision", "id", "resource"]), st.text())
            .map(json.dumps)
            .map(str.encode),
            st.lists(st.tuples(st.sampled_from(["ce_id", "ce_type", "webhook-id"]), st.binary())),
        ),
        max_size=4,
    )
)
def test_no_message_upsets_the_desk(tmp_path_factory, messages):
    async def play():
        folder = tmp_path_factory.mktemp("fuzz")
        async with group(folder) as made:
            bridge = await made.bridge(answer_strays=True, early_grace="0s")
            for body, headers in messages:
                await bridge.intake.take(Delivery(body, headers), "bus")
            await bridge.consider()
            assert made.posts() == []

    asyncio.run(play())
