"""How scheduled events appear, change and end."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.world import (
    EVENT_ID,
    ME,
    NOON,
    NOTICE,
    OTHER,
    SECOND,
    World,
    scheduled_event,
    started,
    words,
)

from bridge.core.diff import MOST_STATES, with_past
from bridge.core.ids import digest
from bridge.core.state import Tracked

EVENT = scheduled_event()
MINUTE = timedelta(minutes=1)


def test_an_event_first_seen_as_scheduled_is_scheduled():
    [found] = World().see(EVENT)

    assert (found.what, found.life, found.affected) == ("scheduled", 1, True)
    assert (found.previous_status, found.inferred, found.changes) == (None, False, {})


def test_an_event_first_seen_as_started_is_started():
    [found] = World().see(started(EVENT))

    assert (found.what, found.previous_status, found.inferred) == ("started", None, False)


def test_an_event_that_starts_is_started_and_keeps_the_last_known_not_before():
    world = World()
    world.see(EVENT)

    [found] = world.see(started(EVENT))

    assert (found.what, found.previous_status) == ("started", "Scheduled")
    assert found.event.not_before == EVENT.not_before


def test_an_event_that_starts_with_other_resources_is_started_only():
    world = World()
    world.see(EVENT)

    assert words(world.see(replace(started(EVENT), resources=(ME,)))) == ["started"]


def test_what_changes_in_a_started_event_is_not_news():
    world = World()
    world.see(started(EVENT))

    assert world.see(replace(started(EVENT), description="probation", resources=(OTHER,))) == []


@pytest.mark.parametrize("status", ["Completed", "canceled", "Cancelled"])
def test_a_document_that_says_the_event_has_ended_shows_it_as_absent(status: str):
    world = World()
    assert world.see(replace(EVENT, status=status)) == []
    world.see(started(EVENT))

    assert words(world.see(replace(EVENT, status=status))) == ["completed"]


def test_an_unknown_status_is_not_a_start():
    world = World()
    [found] = world.see(replace(EVENT, status="Pondering"))
    assert (found.what, found.event.status) == ("scheduled", "Scheduled")

    assert words(world.see(replace(EVENT, status="STARTED"))) == ["started"]


def test_an_unknown_type_is_handled_like_any_other():
    world = World()
    strange = replace(EVENT, event_type="Levitate")

    found = [*world.see(strange), *world.see(started(strange)), *world.see()]

    assert words(found) == ["scheduled", "started", "completed"]


@pytest.mark.parametrize(
    ("field", "value", "name", "old", "new"),
    [
        (
            "not_before",
            NOON + 2 * NOTICE,
            "notBefore",
            "2026-11-15T12:15:00Z",
            "2026-11-15T12:30:00Z",
        ),
        ("resources", (ME, "VM_9"), "resources", [OTHER, ME], [ME, "VM_9"]),
        ("event_type", "Redeploy", "eventType", "Reboot", "Redeploy"),
        ("description", None, "description", EVENT.description, None),
        ("duration", 9, "durationInSeconds", -1, 9),
    ],
)
def test_a_field_that_changes_while_scheduled_is_an_update_that_says_so(
    field: str, value: Any, name: str, old: object, new: object
):
    world = World()
    world.see(EVENT)

    [found] = world.see(replace(EVENT, **{field: value}))

    assert (found.what, found.previous_status, found.repeat) == ("updated", "Scheduled", 0)
    assert found.changes == {name: {"from": old, "to": new}}


@pytest.mark.parametrize(
    "same",
    [
        replace(EVENT, resources=(OTHER, ME)),
        replace(EVENT, resources=(ME, OTHER, ME)),
        replace(EVENT, event_id=EVENT_ID.lower()),
        replace(EVENT, not_before=None),
        replace(EVENT, duration=-1.0),
        replace(EVENT, event_source="Platform"),
        replace(EVENT, resource_type=None),
        replace(EVENT, extra={"New": 1}),
        replace(EVENT, status="Acknowledged"),
    ],
)
def test_an_unchanged_event_gives_nothing(same):
    world = World()
    world.see(EVENT)

    assert world.see(same) == []
    assert words(world.see(started(same))) == ["started"]


def test_an_event_that_alternates_counts_how_often_each_state_was_announced():
    world = World()
    later = replace(EVENT, not_before=NOON + 2 * NOTICE)
    world.see(EVENT)

    found = [world.see(state)[0] for state in (later, EVENT, later, EVENT)]

    assert words(found) == ["updated"] * 4
    assert [update.repeat for update in found] == [0, 1, 1, 2]


def test_the_spelling_of_the_event_id_is_azures_latest():
    world = World()
    world.see(EVENT)
    world.see(replace(EVENT, event_id=EVENT_ID.lower()))

    [found] = world.see(after=2 * NOTICE)

    assert (found.event.event_id, found.event.key) == (EVENT_ID.lower(), EVENT_ID)


def test_each_event_is_compared_on_its_own():
    world = World()
    one, two, three = (scheduled_event(name) for name in ("A", "B", "C"))
    world.see(one, two)

    found = world.see(started(two), three)

    assert [(each.event.key, each.what) for each in found] == [
        ("B", "started"),
        ("C", "scheduled"),
        ("A", "canceled"),
    ]


def test_started_never_goes_back_to_scheduled():
    world = World()
    world.see(started(EVENT))

    assert world.see(EVENT) == []
    assert world.regressed == (EVENT_ID,)

    [found] = world.see()
    assert (found.what, found.inferred) == ("completed", False)
    assert world.regressed == ()


def test_a_started_event_that_disappears_is_completed_and_observed():
    world = World()
    world.see(EVENT)
    world.see(started(EVENT))

    [found] = world.see()

    assert (found.what, found.previous_status, found.inferred) == ("completed", "Started", False)


def test_a_started_event_that_disappears_while_the_bridge_is_down_is_completed_by_inference():
    world = World()
    world.see(started(EVENT))
    world.restart()

    [found] = world.see(after=10 * MINUTE)

    assert (found.what, found.inferred) == ("completed", True)


def test_a_scheduled_event_that_disappears_before_its_time_is_canceled_by_inference():
    world = World()
    world.see(EVENT)

    [found] = world.see()

    assert (found.what, found.previous_status, found.inferred) == ("canceled", "Scheduled", True)


@pytest.mark.parametrize(
    ("gone_at", "what"),
    [
        (NOON + NOTICE - SECOND, "canceled"),
        (NOON + NOTICE, "completed"),
        (NOON + NOTICE + SECOND, "completed"),
    ],
)
def test_a_scheduled_event_that_disappears_after_its_time_is_completed(gone_at, what):
    world = World()
    world.see(EVENT)

    [found] = world.see(after=gone_at - world.facts.now)

    assert (found.what, found.inferred) == (what, True)


def test_a_scheduled_event_without_a_time_is_canceled():
    world = World()
    world.see(replace(EVENT, not_before=None))

    assert words(world.see(after=NOTICE)) == ["canceled"]


@pytest.mark.parametrize(
    ("approved", "what"), [({EVENT_ID}, "completed"), ({"ANOTHER"}, "canceled")]
)
def test_a_scheduled_event_that_disappears_after_our_approval_is_completed(approved, what):
    world = World()
    world.see(replace(EVENT, event_id=EVENT_ID.lower()))

    [found] = world.see(approved=frozenset(approved))

    assert (found.what, found.inferred) == (what, True)


def test_ends_are_the_same_across_a_restart():
    world = World()
    world.see(EVENT, started(scheduled_event("B")))
    world.restart()

    found = world.see(after=MINUTE)

    assert [(each.what, each.inferred) for each in found] == [
        ("canceled", True),
        ("completed", True),
    ]


def test_a_restart_alone_gives_nothing():
    world = World()
    world.see(EVENT, started(scheduled_event("B")))
    world.restart()

    assert world.see(EVENT, started(scheduled_event("B"))) == []


# --- the states that an event had ---------------------------------------------------------------


def past(world: World) -> list[tuple[str, Any]]:
    [known] = world.state.tracked.values()
    return [(one.event_type, one.since) for one in known.past]


def test_the_states_of_an_event_are_remembered_from_when_they_were_first_seen():
    world = World()
    world.see()
    for kind in ("Freeze", "Freeze", "Reboot"):
        world.see(replace(EVENT, event_type=kind))

    [known] = world.state.tracked.values()
    assert past(world) == [("Freeze", NOON + 2 * SECOND), ("Reboot", NOON + 4 * SECOND)]
    assert [one.digest for one in known.past] == [
        digest(replace(EVENT, event_type=kind)) for kind in ("Freeze", "Reboot")
    ]
    assert known.watched


def test_states_survive_a_restart_and_those_of_an_event_that_was_not_announced_count_too():
    world = World()
    world.see(replace(EVENT, resources=(OTHER,)))
    world.restart()
    [found] = world.see(EVENT)

    [known] = world.state.tracked.values()
    assert found.what == "scheduled"
    assert [one.resources for one in known.past] == [(OTHER,), (ME, OTHER)]


def test_an_event_that_appeared_while_nobody_looked_was_not_watched():
    world = World(watching=False)
    world.see(EVENT)

    [known] = world.state.tracked.values()
    assert not known.watched


def test_only_so_many_states_are_remembered_and_that_some_are_forgotten_too():
    world = World()
    world.see()
    for number in range(MOST_STATES + 1):
        world.see(replace(EVENT, description=str(number)))

    [known] = world.state.tracked.values()
    assert len(known.past) == MOST_STATES
    assert known.past[-1].digest == digest(known.event)
    assert not known.watched


def test_after_the_clock_was_set_back_no_state_seems_to_be_in_the_future():
    world = World()
    world.see(replace(EVENT, event_type="Freeze"))
    world.see(EVENT, after=-MINUTE)

    assert past(world) == [("Freeze", world.facts.now), ("Reboot", world.facts.now)]


@pytest.mark.parametrize(("states", "since"), [({"a": 1}, NOON), ({"a": 1, "b": 1}, NOON + MINUTE)])
def test_an_older_journal_tells_since_when_only_if_there_was_one_state(states, since):
    known = Tracked(EVENT, announced=True, since=NOON, states=states)

    [state] = with_past(known, NOON + MINUTE).past
    assert (state.digest, state.since) == (digest(EVENT), since)


def test_what_an_older_journal_knew_is_the_state_before_the_next_one():
    world = World()
    world.see(EVENT)
    [(key, known)] = world.state.tracked.items()
    world.state = replace(world.state, tracked={key: replace(known, past=())})
    world.see(replace(EVENT, event_type="Terminate"), after=MINUTE)

    assert [kind for kind, _ in past(world)] == ["Reboot", "Terminate"]


def test_a_new_life_begins_without_the_states_of_the_last_one():
    world = World()
    world.see(replace(EVENT, event_type="Freeze"))
    world.see()
    world.see(EVENT)

    assert [kind for kind, _ in past(world)] == ["Reboot"]
