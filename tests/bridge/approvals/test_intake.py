"""The intake: what it takes, holds back and refuses, who publishes, and when it takes nothing."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.bridge import cast_votes, counted, event_id, group, plan
from support.journal_tools import statements
from support.signing import Signer

from bridge.common.errors import Unavailable
from bridge.journal.cursors import checkpoints
from bridge.journal.votes import early
from bridge.plugins import Delivery
from bridge.policy.message import APPROVE, fingerprint
from bridge.policy.votes import HTTP

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


# --- logs and keys -------------------------------------------------------------------------------


def placed(log: str, offset: int, recorded: datetime | None = None) -> dict[str, Any]:
    """Where a broker recorded a message."""
    return {"_log": f"bus@{log}/t/0", "_position": f"t/0/{offset}", "_recorded": recorded}


async def decisions(bridge, key):
    return [vote.decision for vote in await cast_votes(bridge, key)]


async def test_equal_positions_in_two_clusters_are_two_messages(two):
    bridge = await two.bridge(**EACH)
    key = event_id(two)
    await bridge.hear(key, approver="orders", decision="release", **placed("a", 7))
    await bridge.hear(key, approver="orders", decision="hold", **placed("b", 7))
    assert await decisions(bridge, key) == ["hold"]


async def test_a_hold_in_another_cluster_or_a_new_topic_is_not_dropped_as_older(two):
    """The offsets begin at 0 again, so the hold must not look older than the approval."""
    now, key = datetime.now(UTC), event_id(two)
    for log, recorded in (("b", now), ("a", now)):
        bridge = await two.bridge(f"vm-{'ab'.index(log)}", dry_run=True)
        early, late = recorded - timedelta(minutes=2), recorded - timedelta(minutes=1)
        await bridge.hear(key, approver="orders", **placed("a", 90, early))
        await bridge.hear(key, approver="orders", decision="hold", **placed(log, 0, late))
        assert await decisions(bridge, key) == ["hold"], log


async def test_a_topic_that_is_created_again_repeats_offsets_but_no_message(two):
    bridge = await two.bridge(**EACH)
    key, now = event_id(two), datetime.now(UTC)
    for minute, decision in enumerate(["hold", "release", "hold"]):
        recorded = now - timedelta(minutes=9 - minute)
        for _ in range(2):
            await bridge.hear(key, decision=decision, **placed("a", 0, recorded))
        assert await decisions(bridge, key) == [decision]
    assert counted(bridge, "dropped", "duplicate") == 3


@pytest.mark.parametrize("place", [placed("a", 0), {"_position": "t/0/0"}, {}])
async def test_no_sender_can_use_up_the_key_of_a_hold_that_has_no_id(two, place):
    bridge = await two.bridge(**EACH)
    key = event_id(two)
    body = json.dumps({"eventId": key, "decision": "hold"}).encode()
    for name in ("t/0/0", "bus@a/t/0/0", fingerprint(body)):
        await bridge.hear(key, id=name, approver="mallory", decision="release")
    given = {name[1:]: value for name, value in place.items()}
    await bridge.intake.take(Delivery(body, **given), "bus")
    assert "hold" in await decisions(bridge, key)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ([("ce_specversion", b"1.0"), ("ce_id", b"a-1"), ("ce_source", b"/o"), ("ce_type", APPROVE.encode())], {}),
        ([], {"id": "a-1"}),
        ([("webhook-id", b"a-1")], {}),
    ],
    ids=["cloudevent", "json", "webhook"],
)  # fmt: skip
async def test_an_id_that_the_sender_gave_counts_once_across_all_channels(two, headers, body):
    bridge = await two.bridge(**EACH)
    key = event_id(two)
    vote = {"eventId": key, "approver": "orders", "resource": "vm-0"}
    said = json.dumps({**vote, **body}).encode()
    await bridge.intake.take(Delivery(said, headers, position="t/0/1", log="bus@a/t/0"), "bus")
    assert await decisions(bridge, key) == ["approve"]
    await bridge.hear(**{**vote, "decision": "hold", "id": "a-2"})
    await bridge.intake.take(Delivery(said, headers), "plant")
    await bridge.intake.take(Delivery(said, headers, position="t/0/9", log="b@b/t/0"), "desk")
    assert await decisions(bridge, key) == ["hold"]
    assert counted(bridge, "dropped", "duplicate") == 2


async def test_a_signed_vote_counts_once_on_a_bus_and_by_a_token(two):
    rules = {"allow": [Signer("orders").entry(), {"approver": "orders", "token": "ops"}]}
    bridge = await two.bridge(**EACH, **rules)
    key = event_id(two)
    first = Signer("orders").delivery(key, id="a-1", resource="vm-0")
    await bridge.intake.take(first, "bus", must_sign=True)
    second = Signer("orders").delivery(key, name="w-2", resource="vm-0", decision="hold")
    await bridge.intake.take(second, "bus", must_sign=True)
    again = Delivery(json.dumps({"eventId": key, "id": "a-1", "resource": "vm-0"}).encode())
    [told] = await bridge.intake.take_local(again, HTTP, "ops")
    assert (told.outcome, told.reason) == ("refused", "replayed")
    assert await decisions(bridge, key) == ["hold"]


async def test_a_record_time_in_the_future_is_not_used(two):
    """Producers may set it, and could claim to have seen what comes."""
    bridge = await two.bridge(**EACH)
    now = bridge.clock.now()
    for name, recorded in (
        ("past", now - timedelta(hours=1)),
        ("future", now + timedelta(hours=1)),
    ):
        place = placed(name, 0, recorded)
        await bridge.hear(event_id(two), approver=name, decision="hold", **place)
    found = {vote.approver: vote.recorded for vote in await cast_votes(bridge, event_id(two))}
    assert found == {"past": now - timedelta(hours=1), "future": None}


async def test_a_record_time_is_used_although_our_clock_is_behind(two):
    """A record of five minutes ago then looks like one of the future."""
    bridge = await two.bridge(**EACH)
    bridge.runtime.status.source.clock_skew = -600.0
    recorded = bridge.clock.now() + timedelta(minutes=5)
    await bridge.hear(event_id(two), decision="hold", **placed("a", 0, recorded))
    [vote] = await cast_votes(bridge, event_id(two))
    assert vote.recorded == recorded


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


GO = [("ce-specversion", b"1.0"), ("ce-source", b"/go")]


async def test_our_own_cloudevents_are_dropped_in_every_mode(two):
    bridge = await two.bridge(answer_strays=True)
    body = json.dumps({"eventId": event_id(two), "status": "Scheduled"}).encode()
    ours = b"azure.scheduledevents.scheduled.v1"
    for name in ("ce-type", "ce_type", "type"):
        await bridge.intake.take(Delivery(body, [*GO, ("ce-id", b"1"), (name, ours)]), "bus")
    await bridge.consider()
    assert counted(bridge, "dropped", "not-an-approval") == 3
    assert (await bridge.told(), two.posts()) == ([], [])


async def test_of_hold_release_and_hold_with_three_ids_the_last_one_stands(two):
    bridge = await two.bridge()
    key = event_id(two)
    for number, decision in enumerate(["hold", "release", "hold"]):
        headers = [*GO, ("ce-id", b"%d" % number), ("ce-type", APPROVE.encode())]
        body = json.dumps({"eventId": key, "decision": decision, "approver": "go"}).encode()
        await bridge.intake.take(Delivery(body, headers), "plant")
    await bridge.hear(key, approver="orders")
    await bridge.consider()
    assert sorted(await decisions(bridge, key)) == ["approve", "hold"]
    assert two.posts() == []


@pytest.mark.parametrize(
    ("body", "headers", "approval"),
    [
        (b"{}", [*GO, ("ce-id", b"a-1"), ("ce-type", APPROVE.encode())], "a-1"),
        (b"\xff", [*GO, ("ce-id", b"a-1"), ("ce-type", b"other")], "a-1"),
        (b'{"specversion": "0.3", "id": "a-1", "source": "/s", "data": {}}', [], "a-1"),
        (b'{"eventId": "e", "id": "a-1", "desicion": "hold"}', [], "a-1"),
    ],
    ids=range(4),
)
async def test_a_refusal_has_the_id_of_a_malformed_message(two, body, headers, approval):
    bridge = await two.bridge(answer_strays=True)
    await bridge.intake.take(Delivery(body, headers, position="t/0/1"), "bus")
    [told] = await bridge.told()
    assert (told["data"]["reason"], told["data"]["approvalId"]) == ("malformed", approval)
    assert (told["causationid"], told["data"]["position"]) == (approval, "t/0/1")


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


HEADERS = ["ce_id", "ce-id", "ce_type", "type", "specversion", "content-type", "webhook-id"]


# --- whatever comes ------------------------------------------------------------------------------


@pytest.mark.fuzz
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.binary(max_size=60)
            | st.dictionaries(st.sampled_from(["eventId", "decision", "id", "resource"]), st.text())
            .map(json.dumps)
            .map(str.encode),
            st.lists(st.tuples(st.sampled_from(HEADERS), st.binary())),
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


async def test_many_votes_read_what_is_pending_once(two):
    bridge = await two.bridge()
    key = event_id(two)
    with statements(bridge.journal) as found:
        for number in range(10):
            await bridge.hear(key, approver=f"service-{number}")
    assert len(await cast_votes(bridge, key)) == 10
    assert sum("SELECT * FROM tracked" in sql for sql in found) == 1


async def test_a_vote_is_assessed_by_what_was_committed_before_it(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two), approver="orders")
    key = plan(two, "later")
    await bridge.poll()
    await bridge.hear(key, approver="orders")
    assert len(await cast_votes(bridge, key)) == 1
    two.world.cancel("later")
    await bridge.poll()
    await bridge.hear(key, approver="billing")
    assert len(await cast_votes(bridge, key)) == 1
