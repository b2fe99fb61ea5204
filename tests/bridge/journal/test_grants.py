"""Grants and reminders in the journal."""

from datetime import timedelta

import pytest
from support.ballots import cast
from support.cloudevents import make
from support.world import EVENT_ID, NOON, OTHER, World, scheduled_event

from bridge.journal.grants import (
    ask,
    grant_of,
    granted,
    mark,
    remind,
    reminded,
    undecided,
    withdraw,
)
from bridge.journal.schema import connect_memory
from bridge.journal.store import Store
from bridge.journal.votes import (
    Receipt,
    forget,
    lapse,
    receive,
    votes,
)

EVENT = (EVENT_ID, 1)
NOW = NOON.timestamp()


@pytest.fixture
def store():
    return Store(connect_memory())


def ids(store):
    return [row[0] for row in store.connection.execute("SELECT id FROM outbox ORDER BY seq")]


def track(store, *events):
    world = World()
    world.see(*events)
    store.commit(world.state, [], NOW)


def test_enough_votes_create_a_duty_and_a_hold_removes_it(store):
    receive(store, Receipt([cast()], duties={EVENT: True}), NOW)
    assert grant_of(store, EVENT) == "due"
    receive(store, Receipt([cast(decision="hold")], duties={EVENT: False}), NOW)
    assert grant_of(store, EVENT) is None
    mark(store, [EVENT], "granted", (), NOW)
    for due in (True, False):
        receive(store, Receipt([cast()], duties={EVENT: due}), NOW)
        assert grant_of(store, EVENT) == "granted"


def test_a_lapsed_vote_removes_the_duty_but_no_grant(store):
    receive(store, Receipt([cast(), cast(resource=OTHER)]), NOW)
    mark(store, [EVENT], "due", (), NOW)
    lapse(store, [cast()], [make()], NOW, still_due=False)
    assert votes(store, *EVENT) == [cast(resource=OTHER)]
    assert grant_of(store, EVENT) is None
    mark(store, [EVENT], "granted", (), NOW)
    lapse(store, [cast(resource=OTHER)], [], NOW, still_due=False)
    withdraw(store, [EVENT])
    assert grant_of(store, EVENT) == "granted"
    assert granted(store) == {EVENT: NOW}


def test_a_lapsed_vote_leaves_a_duty_that_other_votes_have_made(store):
    receive(store, Receipt([cast(), cast(resource=OTHER)], duties={EVENT: True}), NOW)
    lapse(store, [cast()], [make()], NOW, still_due=True)
    assert votes(store, *EVENT) == [cast(resource=OTHER)]
    assert grant_of(store, EVENT) == "due"


def test_asking_chooses_and_marks_in_one_transaction(store):
    receive(store, Receipt([cast()], duties={EVENT: True}), NOW)
    chosen = ask(store, lambda: {EVENT: store.connection.in_transaction}, NOW)
    assert chosen == {EVENT: True}
    assert grant_of(store, EVENT) == "asked"


def test_a_choice_that_fails_or_is_empty_marks_nothing(store):
    mark(store, [EVENT], "due", (), NOW)
    with pytest.raises(ZeroDivisionError):
        ask(store, lambda: {EVENT: 1 / 0}, NOW)
    assert ask(store, dict, NOW) == {}
    assert grant_of(store, EVENT) == "due"


def test_a_vote_does_not_remove_the_mark_of_a_request_on_its_way(store):
    ask(store, lambda: {EVENT: True}, NOW)
    for due in (True, False):
        receive(store, Receipt([cast()], duties={EVENT: due}), NOW)
        assert grant_of(store, EVENT) == "asked"
    lapse(store, [cast()], [], NOW, still_due=False)
    assert grant_of(store, EVENT) == "asked"
    withdraw(store, [EVENT])
    assert grant_of(store, EVENT) is None


def test_undecided_events_are_pending_or_were_due_when_they_ended(store):
    track(store, scheduled_event(), scheduled_event("B"))
    receive(store, Receipt([cast(), cast(event_key="B"), cast(event_key="GONE")]), NOW)
    assert sorted(undecided(store)) == [((EVENT_ID, 1), None), (("B", 1), None)]
    mark(store, [EVENT], "granted", (), NOW)
    mark(store, [("B", 1)], "settled", (), NOW)
    for state in ("due", "asked"):
        mark(store, [("GONE", 1)], state, (), NOW)
        assert undecided(store) == [(("GONE", 1), state)]


def test_a_reminder_is_over_for_one_life_and_is_forgotten_with_its_event(store):
    remind(store, EVENT, ["5m", "1m"], [make()], NOW)
    remind(store, EVENT, ["1m"], [make()], NOW)
    assert reminded(store, EVENT) == {"5m", "1m"}
    assert reminded(store, (EVENT_ID, 2)) == set()
    assert ids(store) == [make().id]
    forget(store, NOON + timedelta(days=1))
    assert reminded(store, EVENT) == set()
