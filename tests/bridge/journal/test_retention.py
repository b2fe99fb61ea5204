from dataclasses import replace

import pytest
from support.ballots import cast
from support.cloudevents import make
from support.journal_tools import NOW, about, delivered, everything, recorded, tracking
from support.world import EVENT_ID, NOON

from bridge.core.cloudevent import full_type
from bridge.journal.cursors import register
from bridge.journal.retention import bound_votes, has_room, space, trim, used
from bridge.journal.schema import hashed
from bridge.journal.store import Settlement, Store
from bridge.journal.votes import Receipt, early, receive, seen, votes, votes_ever
from bridge.policy.votes import Approval, Given

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


# --- votes ---------------------------------------------------------------------------------------

LIMIT = 1 << 20
TENTH = LIMIT // 10
OWNERS = {
    "verified": """SELECT body FROM vote WHERE json_extract(body, '$.verified')
        UNION ALL SELECT body FROM early WHERE json_extract(body, '$.identity') IS NOT NULL
        UNION ALL SELECT event FROM message_key WHERE verified""",
    "unverified": """SELECT body FROM vote WHERE NOT json_extract(body, '$.verified')
        UNION ALL SELECT body FROM early WHERE json_extract(body, '$.identity') IS NULL""",
    "unverified_keys": "SELECT event FROM message_key WHERE NOT verified",
    "outcomes": "SELECT seq FROM unverified_outcome",
}


def outcome(number: int, *, verified: bool = False):
    made = make(number, key=f"V{number}", verified=verified, size=3000)
    return replace(made, type=full_type("approval.recorded"))


def waits(event: str, identity: str | None = None):
    return Given(Approval(event, "k", "a", reason="r" * 300), "bus", NOON, identity)


def key(number: int, who: str = "") -> str:
    return f"\x1f{who}\x1fk-{number}" if who else f"k-{number}"


def remember(store: Store, numbers: range, who: str = "", event: str = EVENT_ID, at: float = NOW):
    rows = [(*hashed(key(number, who)), event, at + number) for number in numbers]
    with store.transaction() as db:
        sql = "INSERT INTO message_key(key, verified, event, at) VALUES (?, ?, ?, ?)"
        db.executemany(sql, rows)


def bound(store: Store, limit: int = LIMIT) -> float:
    with store.transaction():
        return bound_votes(store, limit)


def known(store: Store, numbers: range, who: str = "", event: str = EVENT_ID) -> list[int]:
    return [number for number in numbers if seen(store, key(number, who), event)]


def test_the_space_of_votes_is_known_after_every_change(store: Store):
    receive(store, Receipt([cast(), cast(approver="b", verified=True)]), NOW)
    receive(store, Receipt([cast(decision="hold", reason="r" * 500)]), NOW)
    receive(store, Receipt(early=[waits("E"), waits("F", "orders")], events=[outcome(1)]), NOW)
    remember(store, range(3))
    remember(store, range(2), "orders")
    before = space(store.connection)
    assert min(before.verified, before.unverified, before.unverified_keys, before.outcomes) > 0
    for owner, sql in OWNERS.items():
        rows = store.connection.execute(sql).fetchall()
        lengths = sum(len(str(value)) for (value,) in rows)
        if owner != "outcomes":
            assert lengths < getattr(before, owner) < 3 * lengths + 5000, owner
    for table in ("vote", "early", "message_key", "outbox"):
        store.connection.execute(f"DELETE FROM {table}")
    after = space(store.connection)
    assert (after.votes, after.outcomes) == (0, 0)


def test_the_oldest_keys_of_unverified_senders_are_deleted_first(store: Store):
    store.commit(tracking(EVENT_ID), [], NOW)
    remember(store, range(300), "orders")
    remember(store, range(2000))
    assert bound(store) <= 1
    assert known(store, range(300), "orders") == list(range(300))
    left = known(store, range(2000))
    assert left == list(range(2000 - len(left), 2000))
    assert 100 < len(left) < 1000
    assert space(store.connection).votes <= TENTH


def test_votes_on_pending_events_outlive_everything_else(store: Store):
    store.commit(tracking(EVENT_ID), [], NOW)
    pending = [cast(approver=f"a-{n}") for n in range(20)]
    over = [cast(event_key="OVER", approver=f"a-{n}", verified=n % 2 == 0) for n in range(20)]
    receive(store, Receipt([*pending, *over], [waits("E"), waits("F", "orders")]), NOW)
    remember(store, range(3000), "orders")
    assert bound(store) <= 1
    assert len(votes(store, EVENT_ID, 1)) == 20
    assert votes_ever(store, "OVER") == []
    assert [given.identity for _, given in early(store)] == ["orders"]
    left = known(store, range(3000), "orders")
    assert left == list(range(3000 - len(left), 3000))


def test_keys_of_ended_events_are_deleted_before_those_of_pending_ones(store: Store):
    store.commit(tracking(EVENT_ID), [], NOW)
    remember(store, range(200), "orders")
    remember(store, range(800), "orders", "OVER", at=NOW + 1000)
    assert bound(store) <= 1
    assert len(known(store, range(200), "orders")) == 200


def test_unverified_senders_may_fill_half_of_the_space(store: Store):
    assert has_room(store.connection, ["x" * 100], LIMIT)
    receive(store, Receipt(early=[waits(f"E{n}") for n in range(50)]), NOW)
    assert space(store.connection).unverified < TENTH // 2
    receive(store, Receipt(early=[waits(f"F{n}") for n in range(30)]), NOW)
    assert not has_room(store.connection, ["x" * 100], LIMIT)
    receive(store, Receipt(early=[waits(f"G{n}", "orders") for n in range(50)]), NOW)
    assert space(store.connection).verified > 0


def test_outcomes_of_unverified_votes_are_lost_before_what_best_effort_sinks_need(store: Store):
    register(store, ["sink", "extra"], NOW)
    fill(store, 100)
    store.append([outcome(n) for n in range(50)], NOW)
    store.append([outcome(n, verified=True) for n in range(50, 60)], NOW)
    store.settle("sink", delivered(*(f"K{n}/1" for n in range(1, 101))), NOW)
    limit = used(store.connection) - 100_000
    trimmed = trim(store, now=NOW, keep=DAY, max_size=limit, best_effort=["extra"])
    assert trimmed.lost == {"sink": trimmed.removed, "extra": trimmed.removed}
    assert 20 < trimmed.removed <= 50
    left = recorded(store)
    assert left[:100] == [f"K{n}/1" for n in range(1, 101)]
    assert left[-10:] == [outcome(n).id for n in range(50, 60)]


@pytest.mark.parametrize("settled", [False, True])
def test_a_settled_outcome_makes_room_for_the_next_one(store: Store, settled):
    register(store, ["sink"], NOW)
    done = [receive(store, Receipt(events=[outcome(n)]), NOW, LIMIT) for n in range(40)]
    full = [one.unpublished for one in done]
    assert full == sorted(full)
    assert 20 < sum(one == 0 for one in full) < 40
    if settled:
        store.settle("sink", delivered(*(outcome(n).id for n in range(5))), NOW)
    more = receive(store, Receipt(events=[outcome(99), outcome(100, verified=True)]), NOW, LIMIT)
    assert more.unpublished == (0 if settled else 1)
    assert outcome(100).id in recorded(store)
    assert (outcome(99).id in recorded(store)) is settled
