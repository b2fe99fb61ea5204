"""What the journal costs does not grow with what is in it."""

from pathlib import Path

import pytest
from support.journal_tools import NOW, about, delivered, open_store
from support.journal_work import Work, counted

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
