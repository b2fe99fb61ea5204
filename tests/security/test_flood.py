"""A flood of votes: its cost is limited, and the bridge continues its work."""

import asyncio
import json
from datetime import timedelta

import pytest
from support.attacks import BILLING, ORDERS, RULES, signed
from support.ballots import delivery
from support.bridge import group
from support.journal_tools import about
from support.until import until

from bridge.approvals.publisher import MOST_CHANGES, MOST_REFUSALS
from bridge.journal.votes import early, is_crowded, votes
from bridge.plugins import Delivery

FLOOD, ROOM = 150, 30


@pytest.fixture
async def one(tmp_path, monkeypatch):
    """One VM with an event, and low limits, so that a small flood is enough."""
    monkeypatch.setattr("bridge.approvals.assessment.MOST_UNVERIFIED", ROOM)
    monkeypatch.setattr("bridge.approvals.assessment.MOST_WAITING", ROOM)
    async with group(tmp_path, "vm-0") as made:
        made.world.create(name="e", type="Reboot", notice="1h")
        yield made


def event_id(made):
    return made.world.find("e").event.event_id


async def counts(bridge):
    """Rows that a flood might leave behind."""
    tables = ("vote", "early", "message_key", "outbox")
    return await bridge.journal.run(
        lambda store: {
            name: store.connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0]
            for name in tables
        }
    )


async def flood(bridge, make, **how):
    before = await counts(bridge)
    for number in range(FLOOD):
        await bridge.intake.take(make(number), "bus", **how)
    after = await counts(bridge)
    return {name: after[name] - before[name] for name in after}


async def test_a_flood_of_names_leaves_no_more_votes_than_the_limit(one):
    bridge = await one.bridge(dry_run=True)
    left = await flood(bridge, lambda n: delivery(event_id(one), id=f"{n}", approver=f"a-{n}"))
    assert left["vote"] == left["message_key"] == ROOM
    assert left["outbox"] == ROOM + MOST_REFUSALS
    assert bridge.runtime.status.approvals["refused", "rate-limited"] == FLOOD - ROOM


async def test_a_flood_of_unknown_events_leaves_nothing_in_the_end(one):
    bridge = await one.bridge(early_grace="0s")
    left = await flood(bridge, lambda n: delivery(f"never-{n}", id=f"{n}"))
    await bridge.intake.settle()
    assert left["early"] <= ROOM
    assert await counts(bridge) == {**await counts(bridge), "early": 0, "message_key": 0}
    patient = await one.bridge(early_grace="10m")
    left = await flood(patient, lambda n: delivery(f"never-{n}", id=f"later-{n}"))
    assert left["early"] == left["message_key"] == ROOM
    assert left["outbox"] == 0


@pytest.mark.parametrize("answer_strays", [False, True])
async def test_a_flood_of_unsigned_or_unreadable_messages_is_counted_and_rarely_answered(
    one, answer_strays
):
    bridge = await one.bridge(**RULES, answer_strays=answer_strays)
    bodies = (b'{"eventId": "%b", "id": "%d"}', b"%b no JSON %d")
    event = event_id(one).encode()
    for body in bodies:
        left = await flood(bridge, lambda n, body=body: Delivery(body % (event, n)), must_sign=True)
        assert left["vote"] == left["early"] == left["message_key"] == 0
        assert left["outbox"] <= MOST_REFUSALS
    said = bridge.runtime.status.approvals
    assert (said["refused", "unauthorized"], said["refused", "malformed"]) == (FLOOD, FLOOD)


async def test_during_a_flood_the_bridge_polls_and_a_verified_vote_counts(one):
    bridge = await one.bridge(require={"approvers": ["orders", "billing"]},
                              allow=[*RULES["allow"], {"approver": "anybody"}])  # fmt: skip
    granting = asyncio.create_task(bridge.service.decisions.run())

    async def pour():
        for number in range(20 * FLOOD):
            said = delivery(event_id(one), id=f"{number}", approver="anybody", decision="release")
            await bridge.intake.take(said, "bus")

    pouring = asyncio.create_task(pour())
    try:
        polls = bridge.runtime.status.source.polls
        for who in (ORDERS, BILLING):
            found = signed(who, event_id(one), "good")
            headers = [(name, value.encode()) for name, value in found.headers]
            await bridge.intake.take(Delivery(found.body, headers), "bus")
            await bridge.poll()
        assert bridge.runtime.status.source.polls == polls + 2
        await until(one.posts)
        assert not pouring.done(), "the flood was over too soon to prove anything"
    finally:
        for task in (pouring, granting):
            task.cancel()
        await asyncio.gather(pouring, granting, return_exceptions=True)


# --- the journal ---------------------------------------------------------------------------------

MIB = 1 << 20
VOTES = ("vote", "early", "message_key", "approval_key")
WAYS = {
    "long ids": lambda n: {"id": f"{n}-".ljust(500, "\U0001f600")},
    "changes of mind": lambda n: {"id": f"{n}", "decision": ("hold", "approve")[n % 2]},
    "many names": lambda n: {"id": f"{n}", "approver": f"{n}-".ljust(400, "x")},
}


async def small(made, **more):
    """A bridge with a journal of 1 MiB, and a sink that has not got 125 CloudEvents yet."""
    bridge = await made.bridge(**more)
    journal = bridge.runtime.config.journal.model_copy(update={"max_size": MIB})
    bridge.runtime.configure(bridge.runtime.config.model_copy(update={"journal": journal}))
    await bridge.journal.register(["later"], 0.0)
    await bridge.journal.append([about(f"K{n}", size=3000) for n in range(125)], 0.0)
    return bridge


async def trimmed(bridge):
    return await bridge.journal.trim(now=0.0, keep=1e9, max_size=MIB, best_effort=())


async def pages(bridge, *tables):
    """Bytes of the pages of these tables, as SQLite counts them."""
    names = ",".join(f"'{name}'" for name in tables)
    sql = f"SELECT COALESCE(SUM(pgsize), 0) FROM dbstat WHERE name IN ({names})"
    return await bridge.journal.run(lambda store: store.connection.execute(sql).fetchone()[0])


@pytest.mark.parametrize("way", WAYS)
async def test_350_holds_of_an_unverified_name_push_no_cloudevent_out(one, monkeypatch, way):
    monkeypatch.setattr("bridge.approvals.assessment.MOST_UNVERIFIED", 1000)
    bridge = await small(one)
    for number in range(350):
        said = {"approver": "x", "decision": "hold", **WAYS[way](number)}
        await bridge.hear(event_id(one), **said)
    assert (await trimmed(bridge)).lost == {}
    assert await pages(bridge, *VOTES) <= MIB / 10 + 4 * 4096
    assert await pages(bridge, "outbox") <= MIB


async def test_one_message_about_many_events_keeps_within_the_space_too(one):
    bridge = await small(one)
    events = [{"EventId": f"never-{n}"} for n in range(25)]
    for number in range(20):
        said = {"StartRequests": events, "id": f"{number}", "reason": "\U0001f600" * 500}
        await bridge.hear(None, **said)
    assert await pages(bridge, *VOTES) <= MIB / 10 + 4 * 4096


async def test_outcomes_of_unverified_votes_have_a_limited_space_of_their_own(one, monkeypatch):
    monkeypatch.setattr("bridge.approvals.assessment.MOST_UNVERIFIED", 1000)
    monkeypatch.setattr("bridge.approvals.publisher.MOST_CHANGES", 10_000)
    bridge = await small(one)
    for number in range(150):
        await bridge.hear(event_id(one), approver="x", **WAYS["changes of mind"](number))
    told = sum(len(json.dumps(each)) for each in await bridge.told())
    assert told <= MIB / 10
    assert bridge.runtime.status.approvals["dropped", "unpublished"] > 0
    assert (await trimmed(bridge)).lost == {}


async def test_changes_of_unverified_votes_are_published_60_times_a_minute(one):
    bridge = await one.bridge(dry_run=True)
    for number in range(MOST_CHANGES + 20):
        await bridge.hear(event_id(one), approver="x", **WAYS["changes of mind"](number))
    assert len(await bridge.told("approval.recorded")) == 1 + MOST_CHANGES
    for number in range(MOST_CHANGES + 20):
        await bridge.hear(
            event_id(one), _identity="verified", **WAYS["changes of mind"](1000 + number)
        )
    assert len(await bridge.told("approval.recorded")) == 1 + MOST_CHANGES + MOST_CHANGES + 20
    bridge.clock.ahead += timedelta(seconds=61)
    await bridge.hear(event_id(one), approver="x", **WAYS["changes of mind"](10_000))
    assert len(await bridge.told("approval.recorded")) == 2 + MOST_CHANGES + MOST_CHANGES + 20


async def test_verified_votes_are_never_refused_for_rate_but_read_more_slowly(one):
    bridge = await small(one, early_grace="1h")
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    bridge.intake.sleep = sleep
    for number in range(ROOM + 20):
        await bridge.hear(f"never-{number}", id=f"u-{number}")
    unverified = bridge.runtime.status.approvals["refused", "rate-limited"]
    assert (unverified, pauses) == (20, [])
    for number in range(90):
        said = {"id": f"{number}", "reason": "r" * 500, "_identity": "orders"}
        await bridge.hear(f"soon-{number}", **said)
    assert bridge.runtime.status.approvals["refused", "rate-limited"] == unverified
    waits = [given.identity for _, given in await bridge.journal.run(early)]
    assert waits == ["orders"] * 90, "what unverified senders left goes first"
    assert len(pauses) > 10
    assert pauses[0] < max(pauses) <= 1


async def test_an_existing_vote_may_change_even_at_the_limit(one):
    bridge = await one.bridge(dry_run=True)
    await flood(bridge, lambda n: delivery(event_id(one), id=f"{n}", approver=f"a-{n}"))
    await bridge.hear(event_id(one), approver="a-0", decision="hold", id="changed")
    cast = await bridge.journal.run(lambda store: votes(store, event_id(one).upper(), 1))
    assert [vote.decision for vote in cast if vote.approver == "a-0"] == ["hold"]
    assert not await bridge.journal.run(lambda store: is_crowded(store, cast[0], ROOM))
    assert await bridge.journal.run(early) == []
