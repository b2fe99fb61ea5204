from support.journal_tools import NOW, about, delivered, everything, recorded

from bridge.journal.cursors import register
from bridge.journal.retention import trim, used
from bridge.journal.store import Settlement, Store

DAY = 86400.0
PLENTY = 1 << 40


def by_age(store: Store, now: float = NOW + 30 * DAY + 1):
    return trim(store, now=now, keep=30 * DAY, max_size=PLENTY)


def sinks(store: Store) -> list[str]:
    return [name for (name,) in store.connection.execute("SELECT name FROM sink ORDER BY name")]


def test_old_settled_rows_are_deleted(store: Store):
    register(store, ["left", "right"], NOW)
    store.append([about("A"), about("B")], NOW)
    store.append([about("C")], NOW + 2)
    for sink in ("left", "right"):
        store.settle(sink, delivered("A/1", "B/1", "C/1"), NOW + 2)
    trimmed = by_age(store)
    assert (trimmed.removed, trimmed.lost) == (2, {})
    assert recorded(store) == ["C/1"]
    assert store.connection.execute("SELECT COUNT(*) FROM delivery").fetchone() == (2,)


def test_rows_that_a_configured_sink_has_not_settled_stay_at_any_age(store: Store):
    register(store, ["left", "right"], NOW)
    store.append([about("A"), about("B"), about("C")], NOW)
    store.settle("left", delivered("A/1", "B/1", "C/1"), NOW)
    store.settle("right", delivered("B/1"), NOW)
    store.settle("right", [Settlement("C/1", None, "not now")], NOW)
    assert by_age(store).removed == 1
    assert everything(store, "right") == ["A/1", "C/1"]


def test_a_sink_that_left_keeps_no_rows(store: Store):
    register(store, ["left", "right"], NOW)
    store.append([about("A")], NOW)
    store.settle("left", delivered("A/1"), NOW)
    register(store, ["left"], NOW + 30 * DAY)
    assert by_age(store).removed == 1
    assert sinks(store) == ["left", "right"]


def test_a_sink_that_left_is_forgotten_after_a_while(store: Store):
    register(store, ["left", "right"], NOW)
    store.append([about("A")], NOW + 20 * DAY)
    store.settle("right", delivered("A/1"), NOW)
    register(store, ["left"], NOW)
    by_age(store)
    assert sinks(store) == ["left"]
    assert store.connection.execute("SELECT COUNT(*) FROM delivery").fetchone() == (0,)
    assert everything(store, "left") == ["A/1"]


def fill(store: Store, rows: int, first: int = 1) -> None:
    store.append([about(f"K{n}", size=4000) for n in range(first, first + rows)], NOW)


def test_below_its_limit_the_journal_loses_nothing(store: Store):
    register(store, ["sink"], NOW)
    fill(store, 50)
    trimmed = trim(store, now=NOW, keep=DAY, max_size=used(store.connection))
    assert (trimmed.removed, trimmed.lost) == (0, {})


def test_above_its_limit_the_oldest_settled_rows_are_deleted_first(store: Store):
    register(store, ["sink", "extra"], NOW)
    fill(store, 200)
    settled = [f"K{n}/1" for n in range(101, 201)]
    for sink in ("sink", "extra"):
        store.settle(sink, delivered(*settled), NOW)
    limit = used(store.connection) * 3 // 4
    trimmed = trim(store, now=NOW, keep=DAY, max_size=limit, best_effort=["extra"])
    assert trimmed.lost == {}
    assert trimmed.removed > 30
    assert used(store.connection) <= limit
    left = recorded(store)
    assert left[:100] == [f"K{n}/1" for n in range(1, 101)]
    assert left[100:] == settled[trimmed.removed :]


def test_rows_that_only_best_effort_sinks_need_are_deleted_next_and_counted(store: Store):
    register(store, ["sink", "extra", "more"], NOW)
    fill(store, 200)
    store.settle("sink", delivered(*(f"K{n}/1" for n in range(101, 201))), NOW)
    store.settle("more", delivered(*(f"K{n}/1" for n in range(1, 201, 2))), NOW)
    limit = used(store.connection) * 3 // 4
    trimmed = trim(store, now=NOW, keep=DAY, max_size=limit, best_effort=["extra", "more"])
    assert everything(store, "sink") == [f"K{n}/1" for n in range(1, 101)]
    assert trimmed.removed >= 40
    assert trimmed.lost == {"extra": trimmed.removed, "more": trimmed.removed // 2}


def test_the_oldest_rows_are_deleted_last_and_no_more_than_needed(store: Store):
    register(store, ["sink", "extra"], NOW)
    fill(store, 200)
    store.settle("extra", delivered(*(f"K{n}/1" for n in range(1, 201))), NOW)
    limit = used(store.connection) * 3 // 4
    trimmed = trim(store, now=NOW, keep=DAY, max_size=limit, best_effort=["extra"])
    assert trimmed.lost == {"sink": trimmed.removed}
    assert 40 <= trimmed.removed <= 90
    assert everything(store, "sink") == [f"K{n}/1" for n in range(trimmed.removed + 1, 201)]


def test_rows_that_only_a_removed_sink_needed_do_not_count_as_lost(store: Store):
    register(store, ["sink"], NOW)
    fill(store, 60)
    register(store, [], NOW)
    trimmed = trim(store, now=NOW, keep=DAY, max_size=1)
    assert (trimmed.removed, trimmed.lost) == (60, {})


def test_the_file_becomes_smaller(store: Store, tmp_path):
    register(store, ["sink"], NOW)
    fill(store, 300)
    store.settle("sink", delivered(*(f"K{n}/1" for n in range(1, 301))), NOW)
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = (tmp_path / "journal.db").stat().st_size
    by_age(store)
    store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert (tmp_path / "journal.db").stat().st_size < before / 4
