"""Votes when the stand-in is merged into the file."""

from datetime import UTC, datetime

import pytest
from support.ballots import cast
from support.cloudevents import make
from support.world import EVENT_ID, ME, NOON, World, scheduled_event

from bridge.journal.cursors import checkpoints
from bridge.journal.grants import granted, mark
from bridge.journal.recovery import merge, stand_in
from bridge.journal.schema import connect_file, connect_memory
from bridge.journal.store import Store, born
from bridge.journal.votes import (
    Receipt,
    early,
    receive,
    seen,
    votes,
)
from bridge.policy.votes import Approval, Given

EVENT = (EVENT_ID, 1)
NOW = NOON.timestamp()


@pytest.fixture
def store():
    return Store(connect_memory())


def track(store, *events):
    world = World()
    world.see(*events)
    store.commit(world.state, [], NOW)


def waits(event_id=EVENT_ID, **more):
    approval = Approval(event_id, "k", "a-1", "hold", "orders", ME, "not yet")
    return Given(approval, "bus", NOON, **more)


def test_merging_the_stand_in_neither_loses_nor_doubles_votes(tmp_path):
    file = Store(connect_file(tmp_path / "journal.db"))
    track(file, scheduled_event())
    receipt = Receipt([cast()], [waits("B")], [("k", EVENT_ID)], ("bus", "0", "17"))
    receive(file, receipt, NOW)
    mark(file, [EVENT], "granted", (), NOW)
    spare = stand_in(file)
    assert votes(spare, *EVENT) == []
    assert set(granted(spare)) == {EVENT}, "what was approved is not taken for canceled meanwhile"
    began = born(file)
    assert born(spare) == began
    spare.append([make()], NOW)
    merge(spare, file)
    merge(spare, file)
    assert votes(file, *EVENT) == [cast()]
    assert len(early(file)) == 1
    assert set(granted(file)) == {EVENT}
    assert seen(file, "k", EVENT_ID)
    assert checkpoints(file, "bus") == {"0": "17"}
    assert born(file) == began
    file.close()


def test_an_existing_file_keeps_its_time_of_creation(tmp_path):
    file = Store(connect_file(tmp_path / "journal.db"))
    file.remember(born="2026-01-01T00:00:00.000+00:00")
    merge(Store(connect_memory()), file)
    assert born(file) == datetime(2026, 1, 1, tzinfo=UTC)
    file.close()
