"""The intake: what it takes, holds back and refuses, who publishes, and when it takes nothing."""

import asyncio
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.bridge import cast_votes, counted, event_id, group

from bridge.common.errors import Unavailable
from bridge.journal.cursors import checkpoints
from bridge.journal.votes import early
from bridge.plugins import Delivery
from bridge.policy.message import APPROVE

EACH = {"require": "each-resource"}


async def test_a_vote_is_in_the_journal_once_taken_and_the_leader_publishes_it(two):
    bridge = await two.bridge(**EACH)
    key = event_id(two)
    await bridge.hear(key.lower(), resource="VM-0", approver="orders", reason="drained", id="a-1")
    [vote] = await cast_votes(bridge, key)
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


# --- said twice ----------------------------------------------------------------------------------


async def test_a_message_that_comes_again_changes_nothing(two):
    bridge = await two.bridge(**EACH)
    for _ in range(2):
        await bridge.hear(event_id(two), resource="vm-0", id="a-1")
    assert len(await bridge.told()) == 1
    assert counted(bridge, "dropped", "duplicate") == 1


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
    assert [vote.decision for vote in await cast_votes(bridge, key)] == ["release"]


async def test_a_vote_for_what_never_shows_is_a_stray_after_its_grace(two):
    bridge = await two.bridge(early_grace="100ms", answer_strays=True)
    await bridge.hear("never", id="a-1")
    await bridge.hear("never", id="a-1")
    await asyncio.sleep(0.15)
    await bridge.consider()
    [told] = await bridge.told()
    assert (told["data"]["reason"], told["data"]["eventId"]) == ("unknown-event", "NEVER")
    assert told["subject"] == "NEVER"


# --- strays and strangers ------------------------------------------------------------------------


async def test_our_own_cloudevents_on_the_topic_are_counted_and_never_answered(two):
    bridge = await two.bridge(answer_strays=True)
    ours = {"specversion": "1.0", "type": "azure.scheduledevents.scheduled.v1"}
    await bridge.intake.take(Delivery(json.dumps(ours).encode()), "bus")
    assert counted(bridge, "dropped", "not-an-approval") == 1
    assert await bridge.told() == []


async def test_a_message_the_source_marks_as_unreadable_is_counted_and_acknowledged(two):
    bridge = await two.bridge(**EACH)
    key = event_id(two)
    body = json.dumps({"eventId": key, "resource": "vm-0"}).encode()
    delivery = Delivery(body, checkpoint=("place", "7"), unread="retained")
    await bridge.intake.take(delivery, "bus")
    assert counted(bridge, "dropped", "retained") == 1
    assert await cast_votes(bridge, key) == []
    kept = await bridge.journal.run(lambda store: checkpoints(store, "bus"))
    assert kept == {"place": "7"}


async def test_a_checkpoint_advances_past_every_message_even_a_bad_one(two):
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
def test_no_message_breaks_the_intake(tmp_path_factory, messages):
    async def play():
        folder = tmp_path_factory.mktemp("fuzz")
        async with group(folder) as made:
            bridge = await made.bridge(answer_strays=True, early_grace="0s")
            for body, headers in messages:
                await bridge.intake.take(Delivery(body, headers), "bus")
            await bridge.consider()
            assert made.posts() == []

    asyncio.run(play())
