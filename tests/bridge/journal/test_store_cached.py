"""What is pending is read once, and again only after a commit that may have changed it."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.ballots import cast
from support.journal_tools import NOW, about, delivered, open_store, statements, tracking
from support.world import EVENT_ID, ME, NOON, SECOND

from bridge.core.state import State
from bridge.drills.plan import Plan, made_up
from bridge.journal import drills, grants
from bridge.journal.cursors import register
from bridge.journal.retention import trim
from bridge.journal.store import Store
from bridge.journal.votes import Receipt, end_wait, forget, lapse, receive
from bridge.policy.drill import Drill, DrillVotes, stop, tracked

EVENT = (EVENT_ID, 1)
STATE = {"tracked", "ended", "drill", "meta"}
"""The tables that a state is read from."""
NO_VOTES = DrillVotes(
    "any", satisfied=False, dry_run=False, since=NOON, have=(), expected=("orders",)
)


def drill() -> Drill:
    event = made_up(Plan.model_validate({"eventType": "Reboot"}), "D", (ME,), NOON)
    return Drill(tracked(event, ME, NOON), "ops", "http", NOON, NOON + SECOND, sinks=())


def begin_drill(store: Store) -> None:
    drills.begin(store, drill(), [], NOW)


def end_drill(store: Store) -> None:
    drills.begin(store, drill(), [], NOW)
    drills.proceed(store, drill(), stop(drill(), NO_VOTES, NOON + SECOND), [], NOW)


CHANGES: dict[str, Callable[[Store], Any]] = {
    "a document": lambda store: store.commit(tracking("B"), [], NOW),
    "a drill": begin_drill,
    "the end of a drill": end_drill,
    "a fact": lambda store: store.remember(boot_id="another"),
    "what is forgotten": lambda store: forget(store, NOON),
    "what follows a CloudEvent": lambda store: store.append(
        [about("A", 9)], NOW, lambda db: db.execute("DELETE FROM tracked")
    ),
}
VOTES: dict[str, Callable[[Store], Any]] = {
    "a vote": lambda store: receive(store, Receipt([cast()], keys=[("k", EVENT_ID)]), NOW),
    "the end of a wait": lambda store: end_wait(store, 1, Receipt([cast()]), NOW),
    "a vote that lapses": lambda store: lapse(
        store, [cast()], [about("A", 2)], NOW, still_due=False
    ),
    "a mark": lambda store: grants.mark(store, [EVENT], "due", [about("A", 3)], NOW),
    "a request": lambda store: grants.ask(store, lambda: {EVENT: None}, NOW),
    "a withdrawal": lambda store: grants.withdraw(store, [EVENT]),
    "a reminder": lambda store: grants.remind(store, EVENT, ["5m"], [about("A", 4)], NOW),
    "a CloudEvent": lambda store: store.append([about("A", 5)], NOW),
    "a delivery": lambda store: store.settle("bus", delivered("A/1"), NOW),
}


@pytest.fixture
def known(store: Store) -> Store:
    """A store with something pending, which was read already."""
    register(store, ["bus"], NOW)
    store.commit(tracking("A"), [about("A")], NOW)
    drills.open_to_votes(store)
    return store


def reads(found: list[str]) -> int:
    return sum("FROM tracked" in sql for sql in found)


def fresh(path: Path) -> State:
    """What another program reads from the same file."""
    other = open_store(path)
    try:
        return drills.open_to_votes(other)
    finally:
        other.close()


@pytest.mark.parametrize("name", [*CHANGES, *VOTES])
def test_after_every_commit_the_state_is_that_of_the_journal(known: Store, tmp_path, name: str):
    {**CHANGES, **VOTES}[name](known)
    assert drills.open_to_votes(known) == fresh(tmp_path / "journal.db")
    assert known.cached(Store.load) == known.load()


@pytest.mark.parametrize("name", VOTES)
def test_votes_and_deliveries_do_not_make_it_read_the_state_again(known: Store, name: str):
    VOTES[name](known)
    with statements(known) as found:
        drills.open_to_votes(known)
    assert reads(found) == 0


OTHERS: dict[str, Callable[[Store], Any]] = {
    "a remark": lambda store: store.remember(listened="now"),
    "a trim": lambda store: trim(store, now=NOW, keep=0.0, max_size=1 << 30),
    "what is forgotten without a drill": lambda store: forget(store, NOON),
}


@pytest.mark.parametrize("name", OTHERS)
def test_after_housekeeping_a_commit_writes_only_what_changed(known: Store, tmp_path, name: str):
    known.commit(tracking("A", "B"), [], NOW)
    OTHERS[name](known)
    with statements(known) as found:
        known.commit(tracking("A", "B", "C"), [], NOW)
    assert sum("INTO tracked" in sql for sql in found) == 1
    assert drills.open_to_votes(known) == fresh(tmp_path / "journal.db")


@pytest.mark.parametrize("name", VOTES)
def test_what_keeps_the_state_writes_to_none_of_its_tables(known: Store, name: str):
    written: set[str | None] = set()
    writes = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}

    def note(action: int, table: str | None, *_: object) -> int:
        if action in writes:
            written.add(table)
        return sqlite3.SQLITE_OK

    known.connection.set_authorizer(note)
    VOTES[name](known)
    known.connection.set_authorizer(None)
    assert written
    assert written & STATE == set()


def test_a_commit_that_is_killed_half_way_leaves_the_state_before_it(known: Store):
    before = drills.open_to_votes(known)

    def events():
        assert set(known.cached(Store.load).tracked) == {"B"}  # as this transaction sees it
        yield about("B")
        raise OSError("the power fails")

    with pytest.raises(OSError, match="power"):
        known.commit(tracking("B"), events(), NOW)
    assert drills.open_to_votes(known) == before
    assert set(known.cached(Store.load).tracked) == {"A"}


def test_what_another_program_commits_is_seen(known: Store, tmp_path):
    other = open_store(tmp_path / "journal.db")
    other.commit(tracking("C"), [], NOW)
    other.close()
    assert set(drills.open_to_votes(known).tracked) == {"C"}
