"""What each row changes in the present state, read from a real journal."""

import time
from dataclasses import replace
from datetime import timedelta

import pytest
from support.journal_tools import opened
from support.world import EVENT_ID, ME, NOON, OBSERVER, World, scheduled_event, started

from bridge.core import messages
from bridge.core.state import REHEARSED
from bridge.delivery.present import with_present
from bridge.journal import Settlement
from bridge.journal.cursors import dead_letters, is_replayed, replay_letter, replay_sink

B = "B-2"


class Bridge:
    """A journal with what a bridge records in it, and what its sink is told about the present."""

    def __init__(self, journal) -> None:
        self.journal, self.world = journal, World()

    async def see(self, *events, snapshot: bool = False, **how) -> None:
        found = self.world.see(*events, **how)
        now = self.world.facts.now
        told = [messages.transition(one, OBSERVER, now, 1) for one in found]
        if snapshot:
            about = messages.SourceReport(now, None, None, None, "1")
            told.append(messages.source("snapshot", about, OBSERVER, now, self.world.state.tracked))
        await self.journal.commit(self.world.state, told, time.time())

    async def told(self, scope="own") -> dict[str, list[tuple[str, str | None]]]:
        """For each row that the sink gets next: the changes, each with the kind of its CloudEvent."""
        rows = await self.journal.run(lambda store: store.unsettled("sink", 99, frozenset()))
        events = await self.journal.run(lambda s: with_present(s, "sink", rows, scope))
        await self.deliver(*(event.id for event in events))
        return {
            event.kind: [(one.subject, one.latest and one.latest.kind) for one in event.present]
            for event in events
        }

    async def deliver(self, *ids: str, how: str = "delivered") -> None:
        await self.journal.settle("sink", [Settlement(id_, how) for id_ in ids], time.time())

    async def do(self, operation) -> None:
        def write(store):
            with store.transaction() as db:
                operation(store, db)

        await self.journal.run(write)


@pytest.fixture
async def bridge(tmp_path):
    async with opened(tmp_path / "journal.db", "sink") as journal:
        yield Bridge(journal)


async def test_each_transition_tells_the_state_of_its_event_until_its_end(bridge):
    event = scheduled_event()
    await bridge.see(event)
    assert await bridge.told() == {"scheduled": [(EVENT_ID, "scheduled")]}
    await bridge.see(scheduled_event(description="later"))
    assert await bridge.told() == {"updated": [(EVENT_ID, "updated")]}
    await bridge.see(started(event))
    assert await bridge.told() == {"started": [(EVENT_ID, "started")]}
    await bridge.see()
    assert await bridge.told() == {"completed": [(EVENT_ID, None)]}


async def test_what_was_overtaken_tells_nothing(bridge):
    event = scheduled_event()
    await bridge.see(event)
    await bridge.see(started(event))
    assert await bridge.told() == {"scheduled": []}
    assert await bridge.told() == {"started": [(EVENT_ID, "started")]}


async def test_leaving_the_scope_is_an_end_unless_the_scope_is_all(bridge):
    await bridge.see(scheduled_event())
    await bridge.told()
    await bridge.see(scheduled_event(resources=("other-vm",)), snapshot=True)
    everything = await bridge.told(scope="all")
    assert everything["updated"] == [(EVENT_ID, "updated")]
    await bridge.see(scheduled_event(resources=("other-vm",)), snapshot=True)
    assert await bridge.told() == {"source.snapshot": [(EVENT_ID, None)]}
    await bridge.see(started(scheduled_event(resources=("other-vm",))))
    assert await bridge.told() == {"started": [(EVENT_ID, None)]}


async def test_a_snapshot_tells_all_that_is_pending_and_repeats_the_latest_ends(bridge):
    event, other = scheduled_event(), scheduled_event(B)
    await bridge.see(event, other, scheduled_event("C-3"))
    await bridge.see(started(event), other, after=timedelta(hours=1), snapshot=True)
    rows = await bridge.journal.run(lambda s: s.unsettled("sink", 99, frozenset()))
    await bridge.deliver(*(row.event.id for row in rows if row.event.kind == "scheduled"))
    told = (await bridge.told())["source.snapshot"]
    assert told == [(EVENT_ID, "started"), (B, "scheduled"), ("C-3", None)]


async def test_only_the_latest_snapshot_tells(bridge):
    for _ in range(2):
        await bridge.see(scheduled_event(), snapshot=True)
    assert (await bridge.told())["source.snapshot"] == []
    assert (await bridge.told())["source.snapshot"] == [(EVENT_ID, "scheduled")]


async def test_a_drill_tells_nothing(bridge):
    (found,) = bridge.world.see(scheduled_event())
    drill = messages.transition(replace(found, life=REHEARSED), OBSERVER, NOON, 1)
    await bridge.journal.append([drill], time.time())
    assert await bridge.told() == {"scheduled": []}


async def test_a_replayed_sink_tells_nothing_even_if_attempts_fail(bridge):
    await bridge.see(scheduled_event(), snapshot=True)
    await bridge.told()
    await bridge.do(lambda _, db: replay_sink(db, "sink"))
    rows = await bridge.journal.run(lambda store: store.unsettled("sink", 99, frozenset()))
    failed = [Settlement(row.event.id, None, "busy") for row in rows]
    await bridge.journal.settle("sink", failed, time.time())
    assert await bridge.told() == {"scheduled": [], "source.snapshot": []}
    await bridge.see(scheduled_event(description="new"))
    assert await bridge.told() == {"updated": [(EVENT_ID, "updated")]}


async def test_what_waited_before_a_replay_is_told_when_it_arrives(bridge):
    await bridge.see(scheduled_event())
    await bridge.told()
    await bridge.see(scheduled_event(), scheduled_event(B))
    await bridge.do(lambda _, db: replay_sink(db, "sink"))
    rows = await bridge.journal.run(lambda store: store.unsettled("sink", 99, frozenset()))
    events = await bridge.journal.run(lambda s: with_present(s, "sink", rows, "own"))
    assert [len(event.present) for event in events] == [0, 1]


async def test_a_sink_that_is_older_than_its_rows_replays_them_all(bridge):
    await bridge.see(scheduled_event())
    await bridge.see()
    await bridge.journal.register(["sink", "late"], time.time())
    await bridge.do(lambda _, db: replay_sink(db, "late"))
    known = await bridge.journal.run(lambda s: [is_replayed(s, "late", seq) for seq in (1, 2)])
    assert known == [True, True]


async def test_a_replayed_dead_letter_tells_nothing(bridge):
    await bridge.see(scheduled_event(resources=(ME,)))
    (row,) = await bridge.journal.run(lambda store: store.unsettled("sink", 9, frozenset()))
    await bridge.deliver(row.event.id, how="dead")
    await bridge.do(lambda store, db: replay_letter(db, dead_letters(store)[0]))
    assert await bridge.told() == {"scheduled": []}


async def test_a_row_that_the_disk_damaged_tells_nothing(bridge):
    await bridge.see(scheduled_event())
    await bridge.do(lambda _, db: db.execute("UPDATE outbox SET body = '{'"))
    assert await bridge.told() == {"scheduled": []}
