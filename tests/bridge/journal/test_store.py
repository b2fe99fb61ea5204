from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.journal_tools import (
    NOW,
    about,
    delivered,
    everything,
    low,
    offered,
    open_store,
    recorded,
    tracking,
)
from support.world import NOON

from bridge.core.state import Ended, State
from bridge.journal.cursors import register
from bridge.journal.schema import Corrupt
from bridge.journal.store import Settlement, Store


@pytest.fixture
def sink(store: Store) -> str:
    register(store, ["sink"], NOW)
    return "sink"


def attempt_of(store: Store, name: str):
    return store.connection.execute(
        """SELECT how, attempts, first, last, error FROM delivery JOIN outbox USING (seq)
        WHERE id = ?""",
        (name,),
    ).fetchone()


def test_document_and_cloudevents_are_committed_together(store: Store):
    store.commit(tracking("A"), [about("A")], NOW, degraded_since="then")
    assert (set(store.load().tracked), recorded(store)) == ({"A"}, ["A/1"])
    assert store.recall("degraded_since") == "then"


def test_a_commit_that_fails_half_way_leaves_nothing(store: Store):
    def events():
        yield about("A")
        raise OSError("the power fails")

    with pytest.raises(OSError, match="power"):
        store.commit(tracking("A"), events(), NOW, degraded_since="then")
    assert store.load() == State()
    assert recorded(store) == []
    assert store.recall("degraded_since") is None


def test_a_commit_that_the_disk_refuses_leaves_nothing(store: Store):
    class Refusing:
        """A connection whose disk is full at the last moment."""

        def __init__(self, connection) -> None:
            self._connection = connection

        def execute(self, sql, *more):
            if sql == "COMMIT":
                self._connection.execute("PRAGMA query_only = ON")
                return self._connection.execute("DELETE FROM meta")
            return self._connection.execute(sql, *more)

        def __getattr__(self, name):
            return getattr(self._connection, name)

    real = store.connection
    refusing: Any = Refusing(real)
    store.connection = refusing
    with pytest.raises(Exception, match="readonly"):
        store.append([about("A")], NOW)
    store.connection = real
    assert not real.in_transaction
    assert recorded(store) == []


def test_the_same_id_is_recorded_once_and_keeps_its_first_text(store: Store):
    first, again = about("A"), about("A", description="told again")
    assert store.append([first, again], NOW) == 1
    assert store.append([again], NOW) == 0
    assert store.connection.execute("SELECT body FROM outbox").fetchall() == [(first.body,)]


def test_what_was_there_before_a_restart_is_there_after_it(tmp_path):
    path = tmp_path / "journal.db"
    before = open_store(path)
    state = State(
        tracked=tracking("A").tracked,
        ended={"B": Ended(3, NOON)},
        incarnation=7,
        last_good=NOON,
        settle_until=NOON + timedelta(minutes=5),
        boot_id="boot-1",
    )
    before.commit(state, [about("A")], NOW)
    before.close()
    after = open_store(path)
    assert after.load() == state
    assert recorded(after) == ["A/1"]
    after.close()


@pytest.mark.parametrize("incarnation", [None, 0, 5, -1, "5", "text", "", "s7"], ids=repr)
def test_an_incarnation_comes_back_as_it_was(store: Store, incarnation):
    store.commit(State(incarnation=incarnation), [], NOW)
    assert store.load().incarnation == incarnation
    assert type(store.load().incarnation) is type(incarnation)


def test_a_later_commit_replaces_the_whole_state(store: Store):
    store.commit(tracking("A", "B"), [], NOW)
    store.commit(tracking("B", "C"), [], NOW)
    assert set(store.load().tracked) == {"B", "C"}


def test_a_state_that_cannot_be_read_is_corrupt(store: Store):
    for damage in (
        "INSERT INTO tracked VALUES ('A', 'no json')",
        "INSERT INTO tracked VALUES ('A', '[]')",
        "INSERT INTO tracked VALUES ('A', '{\"event\": {}}')",
        "INSERT INTO meta VALUES ('incarnation', 'x')",
        "INSERT INTO meta VALUES ('last_good', 'yesterday')",
    ):
        store.connection.execute(damage)
        with pytest.raises(Corrupt):
            store.load()
        store.connection.execute("DELETE FROM tracked")
        store.connection.execute("DELETE FROM meta")


def test_what_is_remembered_can_be_forgotten(store: Store):
    store.remember(a="1", b="2")
    store.remember(a=None)
    assert (store.recall("a"), store.recall("b")) == (None, "2")


def test_one_key_is_offered_alone(store: Store, sink: str):
    store.append([about("A", 1), about("B", 1), about("B", 2)], NOW)
    assert [row.event.id for row in store.unsettled(sink, 10, frozenset(), "B")] == ["B/1"]
    assert store.unsettled(sink, 10, frozenset("B"), "B") == []


def test_only_the_oldest_row_of_each_key_is_offered(store: Store, sink: str):
    store.append([about("A", 1), about("B", 1), about("A", 2), about("B", 2)], NOW)
    assert offered(store, sink) == ["A/1", "B/1"]
    store.settle(sink, delivered("A/1"), NOW)
    assert offered(store, sink) == ["B/1", "A/2"]


def test_blocked_keys_are_skipped(store: Store, sink: str):
    store.append([about("A", 1), about("B", 1), about("A", 2)], NOW)
    assert offered(store, sink, blocked=["A"]) == ["B/1"]


def test_no_more_is_offered_than_asked_for(store: Store, sink: str):
    store.append([about(f"K{n}") for n in range(10)], NOW)
    assert offered(store, sink, limit=3) == ["K0/1", "K1/1", "K2/1"]


def test_a_stuck_key_with_thousands_of_rows_hides_no_other(store: Store, sink: str):
    store.append([about("stuck", n) for n in range(3000)], NOW)
    store.append([about("free")], NOW)
    assert offered(store, sink, limit=2) == ["stuck/0", "free/1"]
    assert offered(store, sink, limit=1, blocked=["stuck"]) == ["free/1"]


def test_a_sink_without_a_position_gets_nothing(store: Store):
    store.append([about("A")], NOW)
    assert offered(store, "stranger") == []


def test_a_row_says_what_was_tried_before(store: Store, sink: str):
    store.append([about("A")], NOW - 7)
    (row,) = store.unsettled(sink, 10, frozenset())
    assert (row.attempts, row.first, row.recorded) == (0, None, NOW - 7)
    assert row.event == about("A")
    store.settle(sink, [Settlement("A/1", None, "refused")], NOW)
    store.settle(sink, [Settlement("A/1", None, "timeout")], NOW + 5)
    (row,) = store.unsettled(sink, 10, frozenset())
    assert (row.attempts, row.first) == (2, NOW)


def test_attempts_times_and_the_last_error_are_kept(store: Store, sink: str):
    store.append([about("A"), about("B")], NOW)
    store.settle(sink, [Settlement("A/1", None, "refused")], NOW)
    store.settle(
        sink, [Settlement("A/1", "dead", "never"), Settlement("B/1", "delivered")], NOW + 5
    )
    assert attempt_of(store, "A/1") == ("dead", 2, NOW, NOW + 5, "never")
    assert attempt_of(store, "B/1") == ("delivered", 1, NOW + 5, NOW + 5, None)


def test_filtering_does_not_count_as_an_attempt(store: Store, sink: str):
    store.append([about("A")], NOW)
    store.settle(sink, [Settlement("A/1", "filtered", tried=False)], NOW)
    assert attempt_of(store, "A/1")[:2] == ("filtered", 0)


def test_what_is_settled_stays_settled(store: Store, sink: str):
    store.append([about("A")], NOW)
    store.settle(sink, delivered("A/1"), NOW)
    store.settle(sink, [Settlement("A/1", None, "late"), Settlement("A/1", "dead")], NOW + 1)
    assert attempt_of(store, "A/1") == ("delivered", 1, NOW, NOW, None)


def test_settling_a_deleted_row_changes_nothing(store: Store, sink: str):
    store.settle(sink, delivered("nobody"), NOW)
    assert store.connection.execute("SELECT COUNT(*) FROM delivery").fetchone() == (0,)


def test_one_sink_settles_nothing_for_another(store: Store):
    register(store, ["left", "right"], NOW)
    store.append([about("A")], NOW)
    store.settle("left", delivered("A/1"), NOW)
    assert (everything(store, "left"), everything(store, "right")) == ([], ["A/1"])


def test_the_low_water_mark_moves_over_settled_rows_only(store: Store, sink: str):
    store.append([about(f"K{n}") for n in range(1, 6)], NOW)
    store.settle(sink, delivered("K2/1", "K3/1"), NOW)
    assert low(store, sink) == 0
    store.settle(sink, [Settlement("K1/1", None, "later")], NOW)
    assert low(store, sink) == 0
    store.settle(sink, delivered("K1/1"), NOW)
    assert low(store, sink) == 3
    store.settle(sink, delivered("K5/1"), NOW)
    assert low(store, sink) == 3
    store.settle(sink, delivered("K4/1"), NOW)
    assert low(store, sink) == 5
    assert everything(store, sink) == []


def test_numbers_of_deleted_rows_are_not_reused(store: Store, sink: str):
    store.append([about("A")], NOW)
    store.settle(sink, delivered("A/1"), NOW)
    store.connection.execute("DELETE FROM outbox")
    store.append([about("B")], NOW)
    assert offered(store, sink) == ["B/1"]


def test_times_of_ends_come_back_in_utc(store: Store):
    store.commit(State(ended={"A": Ended(2, datetime(2026, 1, 1, tzinfo=UTC))}), [], NOW)
    assert store.load().ended["A"] == Ended(2, datetime(2026, 1, 1, tzinfo=UTC))


def test_a_commit_that_breaks_off_changes_nothing_and_the_next_one_misses_nothing(store: Store):
    def breaks_off():
        yield about("C", 1)
        raise OSError("in the middle")

    first, later = tracking("A", "B"), replace(tracking("B", "C"), ended={"A": Ended(1, NOON)})
    store.commit(first, [], NOW)
    with pytest.raises(OSError, match="in the middle"):
        store.commit(later, breaks_off(), NOW)
    assert (store.load(), recorded(store)) == (first, [])
    last = replace(later, ended={})
    store.commit(last, [about("C", 1)], NOW)
    assert (store.load(), recorded(store)) == (last, ["C/1"])


def test_a_store_that_has_not_written_the_state_replaces_it(store: Store, tmp_path):
    store.commit(tracking("A", "B"), [], NOW)
    other = open_store(tmp_path / "journal.db")
    other.commit(tracking("B"), [], NOW)
    assert other.load() == tracking("B")
    other.close()
