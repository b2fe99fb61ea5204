from dataclasses import replace

import pytest
from support.journal_tools import (
    NOW,
    about,
    delivered,
    everything,
    low,
    offered,
    recorded,
    tracking,
)

from bridge.core.ids import safe_id
from bridge.journal.cursors import (
    Backlog,
    announced,
    backlog,
    dead_letter,
    dead_letters,
    drop_letter,
    overtaken,
    register,
    replay_letter,
    replay_sink,
    replayable,
    waits,
)
from bridge.journal.store import Settlement, Store


def dead(*ids: str) -> list[Settlement]:
    return [Settlement(name, "dead", "will not have it") for name in ids]


def test_the_first_sinks_of_an_empty_journal_are_new(store: Store):
    assert register(store, ["left", "right"], NOW) == ["left", "right"]
    assert register(store, ["left", "right"], NOW) == []


def test_a_new_sink_begins_with_the_latest_row_of_each_pending_event(store: Store):
    register(store, ["old"], NOW)
    store.commit(
        tracking("A", "B"),
        [about("gone", 1), about("A", 1), about("B", 1), about("gone", 2), about("A", 2)],
        NOW,
    )
    store.append([about("vm-0")], NOW)
    register(store, ["old", "new"], NOW)
    assert everything(store, "new") == ["B/1", "A/2"]
    assert everything(store, "old") == recorded(store)


def test_a_new_sink_gets_all_that_comes_after_it(store: Store):
    store.commit(tracking("A"), [about("A", 1), about("vm-0", 1)], NOW)
    register(store, ["new"], NOW)
    store.append([about("vm-0", 2), about("A", 2)], NOW)
    assert everything(store, "new") == ["A/1", "vm-0/2", "A/2"]


def test_a_new_sink_begins_with_nothing_when_nothing_is_pending(store: Store):
    store.append([about("gone", 1), about("gone", 2)], NOW)
    register(store, ["new"], NOW)
    assert everything(store, "new") == []
    assert low(store, "new") == 2


def test_a_pending_event_with_a_strange_id_is_not_forgotten(store: Store):
    strange = "EVENT 1/Ü"
    store.commit(tracking(strange), [about(safe_id(strange))], NOW)
    register(store, ["new"], NOW)
    assert everything(store, "new") == [f"{safe_id(strange)}/1"]


def test_a_sink_that_returns_continues_where_it_was(store: Store):
    register(store, ["left", "right"], NOW)
    store.append([about("A", 1), about("B", 1)], NOW)
    store.settle("right", delivered("A/1"), NOW)
    register(store, ["left"], NOW)
    store.append([about("A", 2)], NOW)
    assert register(store, ["left", "right"], NOW) == []
    assert everything(store, "right") == ["B/1", "A/2"]


def test_the_time_when_a_sink_left_stays_when_others_come_and_go(store: Store):
    register(store, ["left", "right"], NOW)
    register(store, ["left"], NOW + 1)
    register(store, ["left"], NOW + 2)
    absent = store.connection.execute("SELECT name, absent FROM sink ORDER BY name").fetchall()
    assert absent == [("left", None), ("right", NOW + 1)]
    register(store, ["right"], NOW + 3)
    absent = store.connection.execute("SELECT name, absent FROM sink ORDER BY name").fetchall()
    assert absent == [("left", NOW + 3), ("right", None)]


def test_a_replayed_sink_gets_everything_in_the_journal(store: Store):
    register(store, ["left", "right"], NOW)
    store.append([about("A", 1), about("B", 1), about("A", 2)], NOW)
    store.settle("left", [*delivered("A/1"), *dead("B/1")], NOW)
    store.settle("left", delivered("A/2"), NOW)
    assert replayable(store, "left") == 3
    replay_sink(store.connection, "left")
    assert everything(store, "left") == ["A/1", "B/1", "A/2"]
    assert offered(store, "left") == ["A/1", "B/1"]
    assert dead_letters(store, "left") == []


def test_the_backlog_says_what_waits_and_since_when(store: Store):
    register(store, ["sink"], NOW)
    assert backlog(store, "sink") == Backlog(0, None, 0, 0)
    store.append([about("A"), about("B"), about("C")], NOW)
    store.append([about("D")], NOW + 9)
    store.settle("sink", [*delivered("A/1"), *dead("B/1"), Settlement("C/1", None, "no")], NOW)
    assert backlog(store, "sink") == Backlog(waiting=2, oldest=NOW, dead=1, delivered=1)
    store.settle("sink", delivered("C/1"), NOW)
    assert backlog(store, "sink") == Backlog(waiting=1, oldest=NOW + 9, dead=1, delivered=2)


def test_a_dead_letter_says_who_refused_what_and_why(store: Store):
    register(store, ["left", "right"], NOW)
    store.append([about("A"), about("B")], NOW)
    store.settle("left", [Settlement("B/1", None, "busy")], NOW + 1)
    store.settle("left", dead("B/1"), NOW + 2)
    store.settle("right", dead("A/1"), NOW + 3)
    first, second = dead_letters(store)
    assert (first.id, second.id) == ("right:1", "left:2")
    assert (second.event_id, second.type, second.subject) == ("B/1", about("B").type, "B")
    assert (second.attempts, second.first, second.last) == (2, NOW + 1, NOW + 2)
    assert (second.reason, second.body) == ("will not have it", about("B").body)
    assert dead_letters(store, "left") == [second]
    assert dead_letters(store, limit=1) == [first]
    assert dead_letter(store, "left:2") == second


@pytest.mark.parametrize("name", ["left:1", "right:2", "left:", ":2", "", "left", "left:02"])
def test_a_dead_letter_is_found_only_by_its_own_name(store: Store, name):
    register(store, ["left", "right"], NOW)
    store.append([about("A"), about("B")], NOW)
    store.settle("left", dead("B/1"), NOW)
    assert dead_letter(store, name) is None


def test_any_of_thousands_of_dead_letters_is_found(store: Store):
    register(store, ["sink"], NOW)
    store.append([about(f"K{n}") for n in range(1, 1202)], NOW)
    store.settle("sink", dead(*(f"K{n}/1" for n in range(1, 1202))), NOW)
    assert len(dead_letters(store)) == 1000
    last = dead_letter(store, "sink:1201")
    assert last is not None
    assert last.event_id == "K1201/1"


def test_a_replayed_dead_letter_is_offered_again_from_the_beginning(store: Store):
    register(store, ["sink"], NOW)
    store.append([about("A", 1), about("A", 2), about("B", 1)], NOW)
    store.settle("sink", dead("A/1"), NOW)
    store.settle("sink", delivered("A/2", "B/1"), NOW)
    assert low(store, "sink") == 3
    replay_letter(store.connection, dead_letters(store)[0])
    (row,) = store.unsettled("sink", 10, frozenset())
    assert (row.event.id, row.attempts, row.first) == ("A/1", 0, None)
    store.settle("sink", delivered("A/1"), NOW + 9)
    assert everything(store, "sink") == []
    assert low(store, "sink") == 3


def test_a_dropped_dead_letter_stays_settled(store: Store):
    register(store, ["sink"], NOW)
    store.append([about("A")], NOW)
    store.settle("sink", dead("A/1"), NOW)
    drop_letter(store.connection, dead_letters(store)[0])
    assert dead_letters(store) == []
    assert everything(store, "sink") == []


def test_what_waits_and_announces_something_is_found_newest_first(store: Store):
    register(store, ["sink"], NOW)
    outcome = replace(about("B", 2), type="azure.scheduledevents.approval.recorded.v1")
    store.append([about("A", 1), about("B", 1), outcome, about("C", 1)], NOW)
    store.settle("sink", delivered("A/1"), NOW)
    assert [event.id for event in announced(store, "sink", 10)] == ["C/1", "B/1"]
    assert [event.id for event in announced(store, "sink", 1)] == ["C/1"]


def test_a_row_is_overtaken_by_a_later_one_of_its_key_that_waits_too(store: Store):
    register(store, ["sink"], NOW)
    store.append([about("A", 1), about("B", 1), about("A", 2)], NOW)
    first, other, later = (1, 2, 3)
    assert overtaken(store, "sink", "A", first)
    assert not overtaken(store, "sink", "B", other)
    assert not overtaken(store, "sink", "A", later)
    store.settle("sink", delivered("A/2"), NOW)
    assert not overtaken(store, "sink", "A", first)


def test_the_outcome_of_an_approval_overtakes_nothing(store: Store):
    register(store, ["sink"], NOW)
    outcome = replace(about("A", 2), type="azure.scheduledevents.approval.recorded.v1")
    store.append([about("A", 1), outcome], NOW)
    assert not overtaken(store, "sink", "A", 1)


def test_something_waits_until_all_is_settled(store: Store):
    register(store, ["sink", "other"], NOW)
    assert not waits(store, "sink")
    store.append([about("A", 1), about("A", 2)], NOW)
    store.settle("sink", delivered("A/1"), NOW)
    assert waits(store, "sink")
    store.settle("sink", dead("A/2"), NOW)
    assert (waits(store, "sink"), waits(store, "other")) == (False, True)
