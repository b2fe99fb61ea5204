"""Drills in the journal: one at a time, apart from Azure's events, and not forever."""

import sqlite3
from dataclasses import replace

import pytest
from support.journal_tools import NOW, about, everything, recorded, tracking
from support.world import ME, NOON, SECOND

from bridge.drills.plan import Plan, made_up
from bridge.journal import views
from bridge.journal.cursors import register
from bridge.journal.drills import (
    MOST_KEPT,
    begin,
    every,
    find,
    open_to_votes,
    proceed,
    rehearsed,
    under_way,
)
from bridge.journal.recovery import stand_in
from bridge.policy.drill import Drill, DrillVotes, advance, stop, tracked

ENOUGH = DrillVotes(
    "each-resource", satisfied=True, dry_run=False, since=NOON, have=(ME,), expected=("orders",)
)


def drill(key="D"):
    event = made_up(Plan.model_validate({"eventType": "Reboot"}), key, (ME,), NOON)
    sinks = (("bus", "kafka", True), ("pager", "webhook", False))
    return Drill(tracked(event, ME, NOON), "ops", "http", NOON, NOON + SECOND, sinks=sinks)


def ended(store, key, now=NOW):
    one = drill(key)
    begin(store, one, [], now)
    proceed(store, one, stop(one, ENOUGH, NOON + SECOND), [], now)


def test_it_is_written_with_its_announcement_and_read_back_as_it_was(store):
    assert begin(store, drill(), [about("D")], NOW) is None
    assert recorded(store) == ["D/1"]
    assert under_way(store) == find(store, "D") == drill()
    begun = advance(drill(), ENOUGH, NOON + SECOND)
    over = advance(begun, ENOUGH, NOON + 9 * SECOND)
    assert proceed(store, drill(), begun, [about("D", 2)], NOW)
    assert under_way(store) == begun
    assert proceed(store, begun, over, [about("D", 3)], NOW)
    assert (under_way(store), find(store, "D")) == (None, over)
    assert recorded(store) == ["D/1", "D/2", "D/3"]


def test_starting_a_second_drill_returns_the_first_and_writes_nothing(store):
    begin(store, drill(), [], NOW)
    assert begin(store, drill("E"), [about("E")], NOW) == drill()
    assert (recorded(store), find(store, "E")) == ([], None)


def test_the_database_allows_only_one_open_drill(store):
    begin(store, drill(), [], NOW)
    with pytest.raises(sqlite3.IntegrityError):
        store.connection.execute("INSERT INTO drill VALUES ('E', 1, 0, '{}')")


def test_a_change_of_an_outdated_state_is_not_written(store):
    begin(store, drill(), [], NOW)
    over = stop(drill(), ENOUGH, NOON)
    assert proceed(store, drill(), over, [about("D", 2)], NOW)
    begun = advance(drill(), ENOUGH, NOON)
    assert not proceed(store, drill(), begun, [about("D", 3)], NOW)
    assert (find(store, "D"), recorded(store)) == (over, ["D/2"])


def test_the_oldest_drills_are_forgotten_but_never_the_running_one(store):
    for number in range(MOST_KEPT + 3):
        ended(store, f"D{number}", NOW + number)
    begin(store, drill(), [], NOW - 1)
    known = [one.key for one in every(store)]
    assert len(known) == MOST_KEPT
    assert known[:2] == ["D", f"D{MOST_KEPT + 2}"]


def test_a_drill_is_open_to_votes_but_invisible_to_the_poller(store):
    store.commit(tracking("A"), [], NOW)
    ended(store, "OVER")
    begin(store, drill(), [], NOW)
    assert set(store.load().tracked) == {"A"}
    found = open_to_votes(store)
    assert (set(found.tracked), set(found.ended)) == ({"A", "D"}, {"OVER"})
    store.commit(tracking("B"), [], NOW)
    assert set(open_to_votes(store).tracked) == {"B", "D"}


def test_a_running_drill_is_pending_in_views_and_for_new_sinks(store):
    store.commit(tracking("A"), [about("A")], NOW)
    begin(store, drill(), [about("D")], NOW)
    assert {key: one.drill for key, one in views.pending(store).items()} == {"A": False, "D": True}
    register(store, ["new"], NOW)
    assert everything(store, "new") == ["A/1", "D/1"]
    proceed(store, drill(), stop(drill(), ENOUGH, NOON), [about("D", 2)], NOW)
    assert set(views.pending(store)) == {"A"}
    register(store, ["newer"], NOW)
    assert everything(store, "newer") == ["A/1"]


def test_the_stand_in_has_the_drill(store):
    begin(store, drill(), [], NOW)
    spare = stand_in(store)
    assert rehearsed(spare) == {"D": drill().known}
    spare.close()


def test_a_ballot_without_enough_votes_is_read_back_too(store):
    short = replace(ENOUGH, satisfied=False, since=None, missing=(ME,), holds=("billing",))
    over = stop(drill(), short, NOON)
    begin(store, drill(), [], NOW)
    proceed(store, drill(), over, [], NOW)
    found = find(store, "D")
    assert found is not None
    assert found.ballot == short
