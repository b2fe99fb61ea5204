"""Votes and early approvals in the journal."""

import json
import sqlite3
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.ballots import cast
from support.cloudevents import make
from support.world import EVENT_ID, ME, NOON, OTHER, SECOND, World, scheduled_event

from bridge.core.state import Tracked
from bridge.journal.cursors import checkpoints
from bridge.journal.grants import granted, mark
from bridge.journal.schema import connect_memory
from bridge.journal.store import Store
from bridge.journal.votes import (
    Receipt,
    counted_votes,
    early,
    end_wait,
    forget,
    receive,
    said_by,
    seen,
    votes,
    votes_ever,
    votes_lately,
)
from bridge.policy.judge import Rules
from bridge.policy.votes import Announced, Approval, Given

EVENT = (EVENT_ID, 1)
NOW = NOON.timestamp()


@pytest.fixture
def store():
    return Store(connect_memory())


def ids(store):
    return [row[0] for row in store.connection.execute("SELECT id FROM outbox ORDER BY seq")]


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


def test_nothing_is_written_when_a_part_fails(store):
    unwritable: Any = object()
    bad = replace(make(), body=unwritable)
    receipt = Receipt([cast()], [waits()], [("k", EVENT_ID)], ("bus", "0", "17"), [bad])
    with pytest.raises(sqlite3.ProgrammingError):
        receive(store, receipt, NOW)
    assert votes(store, *EVENT) == []
    assert not seen(store, "k", EVENT_ID)
    assert checkpoints(store, "bus") == {}


def test_what_is_counted_never_has_a_vote_that_was_not_written(store):
    known = Tracked(scheduled_event(), life=1, announced=True)
    rules = Rules(require="any")
    assert counted_votes(store, known, rules).votes == {}

    def dying() -> None:
        with store.transaction(keeps_state=True):
            receive(store, Receipt([cast()]), NOW)
            assert len(counted_votes(store, known, rules).votes) == 1
            raise OSError("the power fails")

    with pytest.raises(OSError, match="power"):
        dying()
    assert votes(store, *EVENT) == []
    assert counted_votes(store, known, rules).votes == {}


def test_a_voter_has_one_vote_and_the_later_one_counts(store):
    receive(store, Receipt([cast()]), NOW)
    held = cast(decision="hold", resource=ME.swapcase(), at=NOON + SECOND)
    receive(store, Receipt([held]), NOW)
    assert votes(store, *EVENT) == [held]
    others = [cast(approver="b"), cast(resource=OTHER), cast(resource=""), cast(life=2)]
    receive(store, Receipt(others), NOW)
    assert len(votes(store, *EVENT)) == 4
    assert [vote.life for vote in votes_ever(store, EVENT_ID)] == [2, 1, 1, 1, 1]
    assert said_by(store, "a-1") == [*votes(store, *EVENT), *votes(store, EVENT_ID, 2)]
    assert said_by(store, "another") == []


def test_a_vote_comes_back_as_it_was(store):
    whole = cast(
        verified=True, position="t/0/1", reason="ü \U0001f527", signed_at=NOON - SECOND, local=True
    )
    bare = cast(approver="b", about=replace(cast().about, not_before=None, resources=()))
    receive(store, Receipt([whole, bare]), NOW)
    assert votes(store, *EVENT) == [bare, whole]


def test_what_many_votes_are_about_is_written_and_read_once(store):
    names = [f"name-{number}" for number in range(50)]
    sizes = []
    for vms in (2, 200):
        about = Announced("Reboot", tuple(f"vm-{number}" for number in range(vms)), NOON)
        receive(store, Receipt([cast(approver=name, about=about) for name in names]), NOW)
        found = votes(store, *EVENT)
        assert [vote.about for vote in found] == [about] * len(names)
        assert len({id(vote.about) for vote in found}) == 1
        sizes.append(store.connection.execute("SELECT SUM(LENGTH(body)) FROM vote").fetchone()[0])
    assert sizes[0] == sizes[1]


def test_what_no_vote_is_about_any_more_is_forgotten(store):
    for kind in ("Freeze", "Reboot"):
        receive(store, Receipt([cast(about=Announced(kind, (ME,), NOON))]), NOW)
    mark(store, [EVENT], "granted", (), NOW)
    forget(store, NOON - SECOND)
    count = "SELECT COUNT(*) FROM announced"
    assert store.connection.execute(count).fetchone() == (1,)
    assert votes(store, *EVENT) == [cast(about=Announced("Reboot", (ME,), NOON))]
    forget(store, NOON + timedelta(days=1))
    assert store.connection.execute(count).fetchone() == (0,)


def test_a_vote_of_an_earlier_version_is_read(store):
    body = json.dumps(asdict(cast()), default=datetime.isoformat)
    place = (*EVENT, *cast().voter, body)
    store.connection.execute("INSERT INTO vote VALUES (?, ?, ?, ?, ?)", place)
    receive(store, Receipt([cast(approver="billing")]), NOW)
    assert votes(store, *EVENT) == [cast(approver="billing"), cast()]


def test_an_early_approval_ends_its_wait_as_a_vote_in_one_step(store):
    verified = waits(identity="cn", position="t/0/1", signed_at=NOON - SECOND, local=True)
    receive(store, Receipt(early=[verified, waits("other")]), NOW)
    [(number, given), _] = early(store)
    assert given == verified
    end_wait(store, number, Receipt([cast()], events=[make()]), NOW)
    assert [each.approval.event_id for _, each in early(store)] == ["other"]
    assert votes(store, *EVENT) == [cast()]
    assert ids(store) == [make().id]


def test_what_belongs_to_an_event_is_kept_until_it_ended_long_ago(store):
    receive(store, Receipt([cast()], keys=[("k", EVENT_ID), ("s", "STRAY")]), NOW)
    mark(store, [EVENT], "granted", (), NOW)
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


def test_the_newest_votes_on_all_events_come_first(store):
    cast_at = [cast(approver=f"a{n}", at=NOON + timedelta(seconds=n)) for n in (2, 0, 1)]
    half = cast(approver="half", event_key="ANOTHER", at=NOON + timedelta(seconds=0.5))
    receive(store, Receipt(votes=[*cast_at, half]), NOW)
    found = votes_lately(store, 3)
    assert [one.approver for one in found] == ["a2", "a1", "half"]
