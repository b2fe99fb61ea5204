"""What the journal costs does not grow with what is in it."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from support.journal_tools import NOW, about, delivered, open_store, tracking
from support.journal_work import Work, counted
from support.world import NOON

from bridge.core.state import Ended, State
from bridge.journal.cursors import register
from bridge.journal.store import Store

FEW, MANY = 300, 3000
BATCH = 64


def filled(folder: Path, rows: int, keys: int) -> Store:
    """A journal in which so many rows of so many keys wait for a sink."""
    folder.mkdir()
    store = open_store(folder / "journal.db")
    register(store, ["sink"], NOW)
    store.append([about(f"K{n % keys}", n // keys) for n in range(rows)], NOW)
    return store


def one_batch(store: Store, blocked: int) -> Work:
    """Read a batch behind so many keys that have to wait, and settle it."""
    waiting = frozenset(f"K{n}" for n in range(blocked))
    with counted(store) as work:
        rows = store.unsettled("sink", BATCH, waiting)
        store.settle("sink", delivered(*(row.event.id for row in rows)), NOW)
    assert rows
    return work


@pytest.mark.parametrize("keys", [1, 100, MANY], ids=["one key", "some keys", "a key each"])
def test_a_batch_costs_the_same_however_many_rows_wait(tmp_path, keys):
    costs = []
    for rows in (FEW, MANY):
        store = filled(tmp_path / str(rows), rows, keys)
        costs.append(one_batch(store, 0 if keys == 1 else BATCH // 2))
        store.close()
    assert costs[1].steps <= costs[0].steps * 1.1
    assert costs[1].statements == costs[0].statements


def test_a_batch_costs_the_same_however_many_rows_behind_a_stuck_one_are_settled(tmp_path):
    store = filled(tmp_path / "journal", MANY, MANY)
    first, *_, last = [one_batch(store, blocked=1) for _ in range(MANY // BATCH - 1)]
    store.close()
    assert last.steps <= first.steps * 1.1


def remembered(count: int) -> State:
    """So many events are pending, and ten times as many have ended."""
    keys = [f"K{n}" for n in range(count)]
    ended = {f"{key}/{n}": Ended(1, NOON) for key in keys for n in range(10)}
    return replace(tracking(*keys), ended=ended)


def one_change(folder: Path, count: int) -> Work:
    """One event moves, one is new, and one ends."""
    folder.mkdir()
    store = open_store(folder / "journal.db")
    before = remembered(count)
    store.commit(before, [], NOW)
    moved = replace(before.tracked["K1"], missing_since=NOON)
    tracked = {**before.tracked, "K1": moved, **tracking("NEW").tracked}
    del tracked["K2"]
    ended = {**before.ended, "K2": Ended(1, NOON)}
    after = replace(before, tracked=tracked, ended=ended, last_good=NOON + timedelta(1))
    with counted(store) as work:
        store.commit(after, [about("NEW")], NOW)
    assert store.load() == after
    store.close()
    return work


def test_a_change_costs_the_same_however_many_events_are_known(tmp_path):
    few, many = (one_change(tmp_path / str(count), count) for count in (10, 500))
    assert (many.statements, many.written) == (few.statements, few.written)
    assert many.steps <= few.steps * 1.1
