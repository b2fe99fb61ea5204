"""A flood of votes: its cost is limited, and the bridge continues its work."""

import asyncio
from datetime import UTC, datetime

import pytest
from support.attacks import BILLING, ORDERS, RULES, signed
from support.ballots import delivery
from support.bridge import group
from support.until import until

from bridge.approvals.publisher import MOST_REFUSALS
from bridge.journal.votes import Receipt, early, forget, is_crowded, receive, seen, votes
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
    tables = ("vote", "early", "approval_key", "outbox")
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
    assert left["vote"] == left["approval_key"] == ROOM
    assert left["outbox"] == ROOM + MOST_REFUSALS
    assert bridge.runtime.status.approvals["refused", "rate-limited"] == FLOOD - ROOM


async def test_a_flood_of_unknown_events_leaves_nothing_in_the_end(one):
    bridge = await one.bridge(early_grace="0s")
    left = await flood(bridge, lambda n: delivery(f"never-{n}", id=f"{n}"))
    await bridge.intake.settle()
    assert left["early"] <= ROOM
    assert await counts(bridge) == {**await counts(bridge), "early": 0, "approval_key": 0}
    patient = await one.bridge(early_grace="10m")
    left = await flood(patient, lambda n: delivery(f"never-{n}", id=f"later-{n}"))
    assert left["early"] == left["approval_key"] == ROOM
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
        assert left["vote"] == left["early"] == left["approval_key"] == 0
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


async def test_a_limited_number_of_unverified_keys_and_all_verified_keys_are_kept(one, monkeypatch):
    monkeypatch.setattr("bridge.journal.votes.MOST_KEYS", 10)
    bridge = await one.bridge(**RULES)
    key = event_id(one).upper()

    def fill(store):
        for number in range(30):
            keys = [(f"k-{number}", key), (f"\x1forders\x1fk-{number}", key)]
            receive(store, Receipt(keys=keys), 1000.0 + number)
        forget(store, datetime.fromtimestamp(0, UTC))
        return [
            [seen(store, f"{who}k-{number}", key) for number in range(30)]
            for who in ("", "\x1forders\x1f")
        ]

    strangers, proved = await bridge.journal.run(fill)
    assert strangers == [False] * 19 + [True] * 11
    assert all(proved)


async def test_an_existing_vote_may_change_even_at_the_limit(one):
    bridge = await one.bridge(dry_run=True)
    await flood(bridge, lambda n: delivery(event_id(one), id=f"{n}", approver=f"a-{n}"))
    await bridge.hear(event_id(one), approver="a-0", decision="hold", id="changed")
    cast = await bridge.journal.run(lambda store: votes(store, event_id(one).upper(), 1))
    assert [vote.decision for vote in cast if vote.approver == "a-0"] == ["hold"]
    assert not await bridge.journal.run(lambda store: is_crowded(store, cast[0], ROOM))
    assert await bridge.journal.run(early) == []
