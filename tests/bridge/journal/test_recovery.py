import sqlite3
from dataclasses import replace

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
from support.world import NOON, SECOND

from bridge.core.state import Ended, State
from bridge.journal.cursors import dead_letters, register
from bridge.journal.recovery import merge, set_aside, stand_in
from bridge.journal.store import Settlement, Store


@pytest.fixture
def file(tmp_path):
    made = open_store(tmp_path / "journal.db")
    yield made
    made.close()


@pytest.fixture
def spares():
    made: list[Store] = []
    yield made
    for spare in made:
        spare.close()


@pytest.fixture
def stand_in_for(spares):
    def make(file: Store | None) -> Store:
        spares.append(stand_in(file))
        return spares[-1]

    return make


def attempts(store: Store, name: str) -> tuple:
    return store.connection.execute(
        """SELECT how, attempts, first, last, error FROM delivery JOIN outbox USING (seq)
        WHERE id = ?""",
        (name,),
    ).fetchone()


def content(store: Store) -> list[str]:
    """All rows; the highest number ever assigned may grow."""
    return [line for line in store.connection.iterdump() if "sqlite_sequence" not in line]


def test_the_stand_in_continues_where_the_file_stopped(file, stand_in_for):
    register(file, ["left", "right"], NOW)
    file.commit(tracking("A"), [about("A", 1), about("B", 1), about("A", 2)], NOW, endpoint="there")
    file.settle("left", delivered("A/1", "B/1"), NOW)
    file.settle("right", delivered("B/1"), NOW)
    file.settle("right", [Settlement("A/1", None, "busy")], NOW)
    spare = stand_in_for(file)
    assert spare.load() == file.load()
    assert spare.recall("endpoint") == "there"
    assert recorded(spare) == ["A/1", "A/2"]
    assert everything(spare, "left") == ["A/2"]
    assert everything(spare, "right") == ["A/1", "A/2"]


def test_numbers_continue_in_the_stand_in(file, stand_in_for):
    register(file, ["sink"], NOW)
    file.append([about("A"), about("B")], NOW)
    file.settle("sink", delivered("A/1", "B/1"), NOW)
    spare = stand_in_for(file)
    spare.append([about("C")], NOW)
    assert offered(spare, "sink") == ["C/1"]


def test_what_happened_in_memory_is_in_the_file_afterwards(file, stand_in_for):
    register(file, ["left", "right"], NOW)
    file.append([about("A", 1), about("B", 1)], NOW)
    spare = stand_in_for(file)
    spare.commit(tracking("A", "C"), [about("A", 2), about("C", 1)], NOW + 1, endpoint="there")
    spare.settle("left", delivered("A/1", "B/1"), NOW + 2)
    spare.settle("left", delivered("A/2"), NOW + 3)
    spare.settle(
        "right", [Settlement("A/1", None, "busy"), Settlement("B/1", "dead", "no")], NOW + 2
    )
    merge(spare, file)
    assert recorded(file) == ["A/1", "B/1", "A/2", "C/1"]
    assert everything(file, "left") == ["C/1"]
    assert everything(file, "right") == ["A/1", "A/2", "C/1"]
    assert [letter.event_id for letter in dead_letters(file)] == ["B/1"]
    assert (set(file.load().tracked), file.recall("endpoint")) == ({"A", "C"}, "there")


def test_attempts_made_in_memory_count(file, stand_in_for):
    register(file, ["sink"], NOW)
    file.append([about("A")], NOW)
    file.settle("sink", [Settlement("A/1", None, "once")], NOW)
    spare = stand_in_for(file)
    spare.settle("sink", [Settlement("A/1", None, "twice")], NOW + 5)
    merge(spare, file)
    assert attempts(file, "A/1") == (None, 2, NOW, NOW + 5, "twice")


def test_merging_again_changes_nothing(file, stand_in_for):
    register(file, ["sink"], NOW)
    file.append([about("A", 1)], NOW)
    spare = stand_in_for(file)
    spare.commit(tracking("A"), [about("A", 2)], NOW)
    spare.settle("sink", delivered("A/1"), NOW)
    merge(spare, file)
    before = content(file)
    merge(spare, file)
    assert content(file) == before


def test_a_cloudevent_recorded_again_without_the_file_is_one_row(file, stand_in_for):
    register(file, ["sink"], NOW)
    file.append([about("A", 1)], NOW)
    file.settle("sink", delivered("A/1"), NOW)
    spare = stand_in_for(None)
    register(spare, ["sink"], NOW)
    spare.append([about("A", 1), about("A", 2)], NOW)
    merge(spare, file)
    assert recorded(file) == ["A/1", "A/2"]
    assert everything(file, "sink") == ["A/2"]


def test_a_sink_that_came_meanwhile_gets_what_it_did_not_get_yet_and_nothing_else(
    file, stand_in_for
):
    register(file, ["old"], NOW)
    file.commit(tracking("A", "B"), [about("gone"), about("A", 1), about("B", 1)], NOW)
    spare = stand_in_for(file)
    spare.append([about("vm-0")], NOW)
    register(spare, ["old", "new"], NOW)
    assert everything(spare, "new") == ["A/1", "B/1"]
    spare.settle("new", delivered("A/1"), NOW)
    spare.append([about("A", 2)], NOW)
    merge(spare, file)
    assert everything(file, "new") == ["B/1", "A/2"]
    assert everything(file, "old") == ["gone/1", "A/1", "B/1", "vm-0/1", "A/2"]


def test_a_sink_that_came_while_the_file_could_not_be_read_loses_nothing(file, stand_in_for):
    register(file, ["old"], NOW)
    file.commit(tracking("A"), [about("A", 1)], NOW)
    file.settle("old", delivered("A/1"), NOW)
    spare = stand_in_for(None)
    register(spare, ["old", "new"], NOW)
    spare.commit(tracking("A"), [about("A", 1)], NOW)
    merge(spare, file)
    assert everything(file, "new") == ["A/1"]
    assert everything(file, "old") == []


def test_a_sink_that_left_meanwhile_keeps_no_rows(file, stand_in_for):
    register(file, ["left", "right"], NOW)
    spare = stand_in_for(file)
    register(spare, ["left"], NOW + 5)
    merge(spare, file)
    rows = file.connection.execute("SELECT name, absent FROM sink ORDER BY name").fetchall()
    assert rows == [("left", None), ("right", NOW + 5)]


def test_a_sink_that_came_and_left_meanwhile_continues_if_it_returns(file, stand_in_for):
    register(file, ["left"], NOW)
    spare = stand_in_for(file)
    register(spare, ["left", "right"], NOW)
    spare.append([about("A", 1), about("A", 2)], NOW)
    spare.settle("right", delivered("A/1"), NOW)
    register(spare, ["left"], NOW)
    merge(spare, file)
    register(file, ["left", "right"], NOW)
    assert everything(file, "right") == ["A/2"]


def test_a_sink_that_returned_meanwhile_continues_where_it_was(file, stand_in_for):
    register(file, ["left", "right"], NOW)
    file.append([about("A")], NOW)
    register(file, ["left"], NOW)
    spare = stand_in_for(file)
    register(spare, ["left", "right"], NOW + 5)
    merge(spare, file)
    assert everything(file, "right") == ["A/1"]
    assert file.connection.execute("SELECT COUNT(*) FROM sink WHERE absent").fetchone() == (0,)


def test_what_ended_in_memory_does_not_come_back(file, stand_in_for):
    file.commit(tracking("A", "B"), [], NOW)
    spare = stand_in_for(file)
    spare.commit(replace(tracking("B"), ended={"A": Ended(1, NOON)}), [about("A", 2)], NOW)
    merge(spare, file)
    assert set(file.load().tracked) == {"B"}
    assert file.load().ended == {"A": Ended(1, NOON)}


def test_events_that_only_the_file_tracks_wait_for_the_next_poll(file, stand_in_for):
    file.commit(tracking("A", "B"), [], NOW)
    spare = stand_in_for(None)
    spare.commit(tracking("B", "C"), [], NOW)
    merge(spare, file)
    assert set(file.load().tracked) == {"A", "B", "C"}


def test_what_came_in_memory_and_ends_later_leaves_the_file(file, stand_in_for):
    file.commit(tracking("A"), [], NOW)
    spare = stand_in_for(file)
    spare.commit(tracking("A", "B"), [], NOW)
    merge(spare, file)
    file.commit(tracking("A"), [], NOW)
    assert set(file.load().tracked) == {"A"}


def test_lives_never_go_down(file, stand_in_for):
    file.commit(State(ended={"A": Ended(3, NOON)}), [], NOW)
    spare = stand_in_for(None)
    spare.commit(State(ended={"A": Ended(1, NOON + SECOND)}), [], NOW)
    merge(spare, file)
    assert file.load().ended == {"A": Ended(3, NOON + SECOND)}


def test_a_boot_that_the_file_has_not_seen_still_counts(file, stand_in_for):
    file.commit(replace(tracking("A"), boot_id="boot-1"), [], NOW)
    spare = stand_in_for(None)
    spare.commit(State(boot_id="boot-2"), [], NOW)
    merge(spare, file)
    assert file.load().boot_id == "boot-1"


def test_a_file_that_cannot_be_read_gives_an_empty_stand_in(file, stand_in_for):
    register(file, ["sink"], NOW)
    file.commit(tracking("A"), [about("A")], NOW)
    file.connection.execute("DROP TABLE delivery")
    spare = stand_in_for(file)
    assert spare.load() == State()
    assert recorded(spare) == []
    assert not spare.connection.in_transaction


def test_a_merge_that_fails_leaves_the_file_as_it_was(file, stand_in_for):
    register(file, ["sink"], NOW)
    file.append([about("A")], NOW)
    spare = stand_in_for(file)
    spare.append([about("B")], NOW)
    spare.settle("sink", delivered("A/1"), NOW)
    file.connection.execute("PRAGMA query_only = ON")
    with pytest.raises(sqlite3.OperationalError):
        merge(spare, file)
    file.connection.execute("PRAGMA query_only = OFF")
    assert (recorded(file), everything(file, "sink")) == (["A/1"], ["A/1"])
    merge(spare, file)
    assert (recorded(file), everything(file, "sink")) == (["A/1", "B/1"], ["B/1"])
    assert low(file, "sink") == 0


def test_an_outage_that_ended_in_memory_does_not_end_again_in_the_file(file, stand_in_for):
    file.commit(tracking("A"), [], NOW, degraded_since=NOON.isoformat())
    spare = stand_in_for(file)
    spare.commit(tracking("A"), [], NOW, degraded_since=None)
    merge(spare, file)
    assert file.recall("degraded_since") is None


def test_an_outage_unknown_to_the_stand_in_continues(file, stand_in_for):
    file.commit(tracking("A"), [], NOW, degraded_since=NOON.isoformat())
    merge(stand_in_for(None), file)
    assert file.recall("degraded_since") == NOON.isoformat()


def test_a_new_sink_begins_with_what_is_pending_in_memory_too(file, stand_in_for):
    register(file, ["old"], NOW)
    file.commit(tracking("A"), [about("A", 1), about("gone", 1), about("A", 2)], NOW)
    for name in ("A/1", "gone/1", "A/2"):
        file.settle("old", delivered(name), NOW)
    spare = stand_in_for(file)
    register(spare, ["old", "new"], NOW)
    assert (everything(spare, "new"), everything(spare, "old")) == (["A/2"], [])
    merge(spare, file)
    assert (everything(file, "new"), everything(file, "old")) == (["A/2"], [])


def test_a_sink_that_returns_in_memory_gets_the_oldest_first(file, stand_in_for):
    register(file, ["left", "right"], NOW)
    file.append([about("A", 1)], NOW)
    file.settle("left", delivered("A/1"), NOW)
    register(file, ["left"], NOW)
    spare = stand_in_for(file)
    register(spare, ["left", "right"], NOW)
    spare.append([about("A", 2)], NOW)
    assert offered(spare, "right") == ["A/1"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state" / "journal.db"


def test_no_more_than_three_are_kept_aside(tmp_path):
    path = tmp_path / "journal.db"
    kept = []
    for n in range(5):
        path.write_text(f"number {n}")
        path.with_name("journal.db-wal").write_text("companion")
        path.with_name("journal.db-shm").write_text("companion")
        kept.append(set_aside(path, "foreign" if n % 2 else "corrupt"))
    left = sorted(p.name for p in tmp_path.iterdir())
    assert left == sorted(k.name + more for k in kept[2:] for more in ("", "-wal"))
    assert [k.read_text() for k in kept[2:]] == ["number 2", "number 3", "number 4"]
