"""Votes, keys, grants and checkpoints in the journal, and that no road back loses them."""

import sqlite3
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from support.ballots import cast
from support.cloudevents import make
from support.world import EVENT_ID, ME, NOON, OTHER, SECOND, World, scheduled_event

from bridge.common.errors import Unavailable
from bridge.journal import Journal
from bridge.journal.cursors import checkpoints
from bridge.journal.grants import grant_of, granted, mark, remind, reminded, undecided, withdraw
from bridge.journal.recovery import merge, stand_in
from bridge.journal.schema import _MIGRATIONS, connect_file, connect_memory
from bridge.journal.store import Store
from bridge.journal.votes import (
    Receipt,
    born,
    early,
    end_wait,
    forget,
    lapse,
    receive,
    said_by,
    seen,
    voices,
    votes,
)
from bridge.policy.votes import Approval, Given

EVENT = (EVENT_ID, 1)
NOW = NOON.timestamp()


@pytest.fixture
def store():
    return Store(connect_memory())


def ids(store):
    return [row[0] for row in store.connection.execute("SELECT id FROM outbox ORDER BY seq")]


def track(store, *events):
    world = World()
    world.see(*events)
    store.commit(world.state, [], NOW)


def waits(event_id=EVENT_ID, **more):
    approval = Approval(event_id, "k", "a-1", "hold", "orders", ME, "not yet")
    return Given(approval, "bus", NOON, **more)


def test_all_that_a_message_changes_is_written_together(store):
    made = make()
    receipt = Receipt([cast()], [waits()], [("k", EVENT_ID)], ("bus", "0", "17"), [made])
    receive(store, receipt, NOW)
    assert votes(store, *EVENT) == [cast()]
    assert [given for _, given in early(store)] == [waits()]
    assert seen(store, "k", EVENT_ID)
    assert not seen(store, "k", "another")
    assert checkpoints(store, "bus") == {"0": "17"}
    assert checkpoints(store, "other") == {}
    assert ids(store) == [made.id]


def test_nothing_of_it_is_written_when_something_cannot_be(store):
    bad = replace(make(), body=object())
    receipt = Receipt([cast()], [waits()], [("k", EVENT_ID)], ("bus", "0", "17"), [bad])
    with pytest.raises(sqlite3.ProgrammingError):
        receive(store, receipt, NOW)
    assert votes(store, *EVENT) == []
    assert not seen(store, "k", EVENT_ID)
    assert checkpoints(store, "bus") == {}


def test_a_vote_that_is_enough_brings_its_duty_and_one_against_it_takes_it_back(store):
    receive(store, Receipt([cast()], duties={EVENT: True}), NOW)
    assert grant_of(store, EVENT) == "due"
    receive(store, Receipt([cast(decision="hold")], duties={EVENT: False}), NOW)
    assert grant_of(store, EVENT) is None
    mark(store, EVENT, "granted", (), NOW)
    for due in (True, False):
        receive(store, Receipt([cast()], duties={EVENT: due}), NOW)
        assert grant_of(store, EVENT) == "granted"


def test_one_voice_has_one_vote_and_the_later_one_stands(store):
    receive(store, Receipt([cast()]), NOW)
    held = cast(decision="hold", resource=ME.swapcase(), at=NOON + SECOND)
    receive(store, Receipt([held]), NOW)
    assert votes(store, *EVENT) == [held]
    others = [cast(approver="b"), cast(resource=OTHER), cast(resource=""), cast(life=2)]
    receive(store, Receipt(others), NOW)
    assert len(votes(store, *EVENT)) == 4
    assert [vote.life for vote in voices(store, EVENT_ID)] == [2, 1, 1, 1, 1]
    assert said_by(store, "a-1") == [*votes(store, *EVENT), *votes(store, EVENT_ID, 2)]
    assert said_by(store, "another") == []


def test_a_vote_comes_back_as_it_was(store):
    whole = cast(
        verified=True, position="t/0/1", reason="ü \U0001f527", signed_at=NOON - SECOND, local=True
    )
    bare = cast(approver="b", about=replace(cast().about, not_before=None, resources=()))
    receive(store, Receipt([whole, bare]), NOW)
    assert votes(store, *EVENT) == [bare, whole]


def test_an_early_approval_ends_its_wait_as_a_vote_in_one_step(store):
    proved = waits(identity="cn", position="t/0/1", signed_at=NOON - SECOND, local=True)
    receive(store, Receipt(early=[proved, waits("other")]), NOW)
    [(number, given), _] = early(store)
    assert given == proved
    end_wait(store, number, Receipt([cast()], events=[make()]), NOW)
    assert [each.approval.event_id for _, each in early(store)] == ["other"]
    assert votes(store, *EVENT) == [cast()]
    assert ids(store) == [make().id]


def test_what_lapses_takes_the_duty_along_but_no_grant(store):
    receive(store, Receipt([cast(), cast(resource=OTHER)]), NOW)
    mark(store, EVENT, "due", (), NOW)
    lapse(store, [cast()], [make()], NOW)
    assert votes(store, *EVENT) == [cast(resource=OTHER)]
    assert grant_of(store, EVENT) is None
    mark(store, EVENT, "granted", (), NOW)
    lapse(store, [cast(resource=OTHER)], [], NOW)
    withdraw(store, EVENT)
    assert grant_of(store, EVENT) == "granted"
    assert granted(store) == {EVENT}


def test_undecided_is_what_is_pending_or_was_due_at_its_end(store):
    track(store, scheduled_event(), scheduled_event("B"))
    receive(store, Receipt([cast(), cast(event_key="B"), cast(event_key="GONE")]), NOW)
    assert sorted(undecided(store)) == [((EVENT_ID, 1), None), (("B", 1), None)]
    mark(store, EVENT, "granted", (), NOW)
    mark(store, ("B", 1), "settled", (), NOW)
    mark(store, ("GONE", 1), "due", (), NOW)
    assert undecided(store) == [(("GONE", 1), "due")]


def test_what_belongs_to_an_event_is_kept_until_it_ended_long_ago(store):
    receive(store, Receipt([cast()], keys=[("k", EVENT_ID), ("s", "STRAY")]), NOW)
    mark(store, EVENT, "granted", (), NOW)
    world = World()
    world.see(scheduled_event())
    store.commit(world.state, [], NOW)
    forget(store, NOON + timedelta(days=20))
    assert seen(store, "k", EVENT_ID)
    assert not seen(store, "s", "STRAY")
    world.see(after=timedelta(days=20))
    world.see(after=timedelta(minutes=6))
    store.commit(world.state, [], NOW)
    forget(store, NOON + timedelta(days=19))
    assert seen(store, "k", EVENT_ID)
    assert votes(store, *EVENT)
    assert granted(store)
    forget(store, NOON + timedelta(days=28))
    assert not seen(store, "k", EVENT_ID)
    assert not votes(store, *EVENT)
    assert not granted(store)


def test_a_fresh_stray_is_kept_while_it_is_fresh(store):
    receive(store, Receipt([cast()], keys=[("s", "STRAY")]), NOW)
    forget(store, NOON - timedelta(days=7))
    assert seen(store, "s", "STRAY")


def test_a_reminder_is_over_for_one_life_and_is_forgotten_with_its_event(store):
    remind(store, EVENT, ["5m", "1m"], [make()], NOW)
    remind(store, EVENT, ["1m"], [make()], NOW)
    assert reminded(store, EVENT) == {"5m", "1m"}
    assert reminded(store, (EVENT_ID, 2)) == set()
    assert ids(store) == [make().id]
    forget(store, NOON + timedelta(days=1))
    assert reminded(store, EVENT) == set()


def test_an_older_journal_gains_the_tables_and_keeps_what_it_has(tmp_path):
    path = tmp_path / "journal.db"
    old = sqlite3.connect(path, isolation_level=None)
    old.executescript(f"BEGIN; {_MIGRATIONS[1]} PRAGMA user_version = 1; COMMIT;")
    Store(old).append([make()], NOW)
    old.close()
    store = Store(connect_file(path))
    receive(store, Receipt([cast()]), NOW)
    assert votes(store, *EVENT) == [cast()]
    assert ids(store) == [make().id]
    store.close()


# --- the stand-in --------------------------------------------------------------------------------


def test_merging_the_stand_in_neither_loses_nor_doubles_votes(tmp_path):
    file = Store(connect_file(tmp_path / "journal.db"))
    track(file, scheduled_event())
    receipt = Receipt([cast()], [waits("B")], [("k", EVENT_ID)], ("bus", "0", "17"))
    receive(file, receipt, NOW)
    mark(file, EVENT, "granted", (), NOW)
    spare = stand_in(file)
    assert votes(spare, *EVENT) == []
    assert granted(spare) == {EVENT}, "what was approved is not taken for canceled meanwhile"
    began = born(file)
    assert born(spare) == began
    spare.append([make()], NOW)
    merge(spare, file)
    merge(spare, file)
    assert votes(file, *EVENT) == [cast()]
    assert len(early(file)) == 1
    assert granted(file) == {EVENT}
    assert seen(file, "k", EVENT_ID)
    assert checkpoints(file, "bus") == {"0": "17"}
    assert born(file) == began
    file.close()


def test_a_file_that_was_there_all_the_time_keeps_its_birthday(tmp_path):
    file = Store(connect_file(tmp_path / "journal.db"))
    file.remember(born="2026-01-01T00:00:00.000+00:00")
    merge(Store(connect_memory()), file)
    assert born(file) == datetime(2026, 1, 1, tzinfo=UTC)
    file.close()


async def test_what_must_be_durable_is_not_done_in_memory(tmp_path):
    journal = Journal(tmp_path / "journal.db")
    await journal.open()
    journal._store.connection.execute("PRAGMA query_only = ON")
    receipt = Receipt([cast()])
    with pytest.raises(Unavailable, match="cannot be written"):
        await journal.durably(lambda store: receive(store, receipt, time.time()))
    assert journal.trouble
    assert await journal.run(lambda store: votes(store, *EVENT)) == []
    with pytest.raises(Unavailable, match="cannot be written"):
        await journal.durably(lambda store: receive(store, receipt, time.time()))
    assert await journal.repair()
    await journal.durably(lambda store: receive(store, receipt, datetime.now(UTC).timestamp()))
    assert await journal.run(lambda store: votes(store, *EVENT)) == [cast()]
    await journal.close()
