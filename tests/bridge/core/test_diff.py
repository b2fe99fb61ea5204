"""The state machine, rule by rule."""

from dataclasses import replace
from datetime import timedelta

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

from bridge.core.diff import REMEMBERED, SETTLING, SILENCE

EVENT = scheduled_event()
MINUTE = timedelta(minutes=1)


# --- appearing -----------------------------------------------------------------------------------


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


def test_a_status_that_nobody_knows_is_no_start():
    world = World()
    [found] = world.see(replace(EVENT, status="Pondering"))
    assert (found.what, found.event.status) == ("scheduled", "Scheduled")

    assert words(world.see(replace(EVENT, status="STARTED"))) == ["started"]


def test_an_unknown_type_goes_the_same_way_as_any():
    world = World()
    strange = replace(EVENT, event_type="Levitate")

    found = [*world.see(strange), *world.see(started(strange)), *world.see()]

    assert words(found) == ["scheduled", "started", "completed"]


# --- updates -------------------------------------------------------------------------------------


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
    field: str, value: object, name: str, old: object, new: object
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
def test_what_is_not_a_change_gives_nothing(same):
    world = World()
    world.see(EVENT)

    assert world.see(same) == []
    assert words(world.see(started(same))) == ["started"]


def test_an_event_that_goes_to_and_fro_counts_how_often_each_state_was_announced():
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


def test_events_are_judged_each_for_itself():
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


# --- ends ----------------------------------------------------------------------------------------


def test_a_started_event_that_is_gone_is_completed_and_that_was_watched():
    world = World()
    world.see(EVENT)
    world.see(started(EVENT))

    [found] = world.see()

    assert (found.what, found.previous_status, found.inferred) == ("completed", "Started", False)


def test_a_started_event_that_went_while_the_bridge_was_down_is_completed_by_inference():
    world = World()
    world.see(started(EVENT))
    world.restart()

    [found] = world.see(after=10 * MINUTE)

    assert (found.what, found.inferred) == ("completed", True)


def test_a_scheduled_event_that_is_gone_before_its_time_is_canceled_always_by_inference():
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
def test_a_scheduled_event_that_is_gone_after_its_time_was_done(gone_at, what):
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
def test_a_scheduled_event_that_is_gone_after_our_approval_was_done(approved, what):
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


# --- boots ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "facts", "what"),
    [
        (EVENT, {}, "completed"),
        (replace(EVENT, resources=(ME.upper(),)), {}, "completed"),
        (replace(EVENT, event_type="Redeploy"), {}, "completed"),
        (replace(EVENT, event_type="Freeze"), {}, "canceled"),
        (replace(EVENT, resources=(OTHER,)), {"scope": "all"}, "canceled"),
        (EVENT, {"vm_name": None}, "canceled"),
    ],
)
def test_a_boot_is_the_end_of_a_scheduled_event_of_this_vm_that_is_no_freeze(event, facts, what):
    world = World(**facts)
    world.see(event)
    world.boot()

    assert world.see(after=MINUTE) == []
    [found] = world.see(after=SETTLING)

    assert (found.what, found.inferred) == (what, True)


def test_a_name_learnt_after_the_boot_still_says_whose_event_it_was():
    world = World(vm_name=None)
    world.see(EVENT)
    world.boot()
    world.see(vm_name=ME)

    [found] = world.see(after=SETTLING)

    assert (found.what, found.affected) == ("completed", True)


def test_an_event_seen_again_after_the_boot_was_not_done_by_it():
    world = World()
    world.see(EVENT)
    world.boot()
    world.see(EVENT)

    assert words(world.see(after=SETTLING)) == ["canceled"]


def test_a_boot_is_not_known_from_a_boot_id_that_nobody_can_tell():
    world = World(boot_id=None)
    world.see(EVENT)
    assert words(world.see(boot_id="boot-1")) == ["canceled"]

    world.see(scheduled_event("B"))
    assert words(world.see(boot_id=None)) == ["canceled"]
    assert world.state.boot_id == "boot-1"


# --- settling ------------------------------------------------------------------------------------


def _after_boot(world: World) -> dict:
    world.boot()
    return {"after": MINUTE}


def _after_silence(_: World) -> dict:
    return {"after": SILENCE + SECOND}


def _after_reset(_: World) -> dict:
    return {"incarnation": 0}


REASONS = pytest.mark.parametrize("upset", [_after_boot, _after_silence, _after_reset])
FAR = replace(EVENT, not_before=NOON + timedelta(days=7), event_type="Freeze")


@REASONS
def test_absence_proves_nothing_for_five_minutes_once_the_service_may_be_enabling_itself(upset):
    world = World()
    world.see(FAR, incarnation=5)

    assert world.see(**upset(world)) == []
    assert world.see(after=SETTLING - SECOND) == []
    assert words(world.see()) == ["canceled"]


@REASONS
def test_an_event_that_returns_while_settling_gives_nothing(upset):
    world = World()
    world.see(FAR, incarnation=5)
    world.see(**upset(world))

    assert world.see(FAR) == []
    assert world.see(FAR, after=SETTLING) == []


@REASONS
def test_a_started_event_ends_at_once_even_while_settling(upset):
    world = World()
    world.see(started(FAR), incarnation=5)

    assert words(world.see(**upset(world))) == ["completed"]


@REASONS
def test_settling_goes_on_across_a_restart(upset):
    world = World()
    world.see(FAR, incarnation=5)
    world.see(**upset(world))
    world.restart()

    assert world.see(after=SETTLING - SECOND) == []
    assert words(world.see()) == ["canceled"]


def test_an_event_that_changed_while_settling_is_updated_when_it_returns():
    world = World()
    world.see(FAR)
    world.boot()
    world.see()

    assert words(world.see(replace(FAR, duration=9))) == ["updated"]


def test_whether_its_time_had_passed_is_judged_when_the_event_was_first_missing():
    world = World()
    world.see(replace(EVENT, event_type="Freeze"))
    world.boot()
    world.see(after=NOTICE - MINUTE)

    assert words(world.see(after=2 * SETTLING)) == ["canceled"]


def test_an_absence_that_ended_counts_no_more():
    world = World()
    world.see(replace(EVENT, event_type="Freeze"))
    world.boot()
    world.see()
    world.see(replace(EVENT, event_type="Freeze"))

    assert words(world.see(after=NOTICE)) == ["completed"]


def test_a_gap_of_a_day_sharp_is_not_yet_too_long():
    world = World()
    world.see(FAR)

    assert words(world.see(after=SILENCE)) == ["canceled"]


@pytest.mark.parametrize(
    ("before", "after", "down"),
    [
        (2, 4, False),
        (4, 4, False),
        (4, 1, True),
        ("4", "1", True),
        ("9", "10", False),
        (4, "1", True),
        ("abc", "abd", False),
        ("abc", 1, False),
        (None, 1, False),
        (4, None, True),
        (None, None, False),
        ("", 1, False),
    ],
    ids=repr,
)
def test_only_an_incarnation_that_went_down_unsettles(before, after, down):
    world = World()
    world.see(EVENT, incarnation=before)

    assert words(world.see(incarnation=after)) == ([] if down else ["canceled"])
    assert world.state.incarnation == after


def test_an_equal_incarnation_does_not_hide_a_change():
    world = World()
    world.see(incarnation=1)

    assert words(world.see(EVENT, incarnation=1)) == ["scheduled"]


# --- lives ---------------------------------------------------------------------------------------


def test_an_event_that_returns_after_its_end_was_announced_begins_a_new_life():
    world = World()
    for life in (1, 2, 3):
        [found] = world.see(EVENT)
        assert (found.what, found.life) == ("scheduled", life)
        [found] = world.see(replace(EVENT, duration=9))
        assert (found.what, found.life, found.repeat) == ("updated", life, 0)
        [found] = world.see()
        assert (found.what, found.life) == ("canceled", life)


@pytest.mark.parametrize(
    ("away", "life"), [(REMEMBERED - SECOND, 2), (REMEMBERED, 1), (2 * REMEMBERED, 1)]
)
def test_an_end_is_remembered_for_thirty_days(away, life):
    world = World()
    world.see(EVENT)
    world.see()

    [found] = world.see(EVENT, after=away)

    assert found.life == life


def test_an_end_is_forgotten_whether_or_not_documents_came_in_between():
    world = World()
    world.see(EVENT)
    world.see()
    for _ in range(31):
        world.see(after=timedelta(days=1))

    assert world.state.ended == {}
    assert world.see(EVENT)[0].life == 1


def test_a_life_that_outlasts_the_memory_of_the_one_before_keeps_its_number():
    world = World()
    world.see(EVENT)
    world.see()
    world.see(EVENT)
    world.see(EVENT, after=REMEMBERED)

    [found] = world.see(after=SETTLING + SECOND)
    assert found.life == 2
    assert world.see(EVENT)[0].life == 3


def test_a_silent_end_out_of_scope_is_no_life():
    world = World()
    foreign = replace(EVENT, resources=(OTHER,))
    assert world.see(foreign) == []
    assert world.see() == []
    assert world.state.ended == {}

    assert world.see(EVENT)[0].life == 1


# --- own and all ---------------------------------------------------------------------------------

FOREIGN = replace(EVENT, resources=(OTHER,))


def test_the_events_of_others_are_nobodys_business_under_scope_own():
    world = World()
    found = [*world.see(FOREIGN), *world.see(started(FOREIGN)), *world.see()]

    assert found == []


def test_the_events_of_others_are_published_under_scope_all():
    world = World(scope="all")
    found = [*world.see(FOREIGN), *world.see(started(FOREIGN)), *world.see()]

    assert words(found) == ["scheduled", "started", "completed"]
    assert {each.affected for each in found} == {False}


def test_nothing_is_dropped_while_the_name_is_unknown():
    world = World(vm_name=None)
    found = [*world.see(FOREIGN), *world.see(started(FOREIGN)), *world.see()]

    assert words(found) == ["scheduled", "started", "completed"]
    assert {each.affected for each in found} == {None}


def test_the_name_is_compared_without_regard_to_case():
    assert words(World(vm_name=ME.lower()).see(EVENT)) == ["scheduled"]


@pytest.mark.parametrize(("entry", "what"), [(EVENT, "scheduled"), (started(EVENT), "started")])
def test_an_event_that_comes_into_scope_is_announced(entry, what):
    world = World()
    world.see(FOREIGN)

    [found] = world.see(entry)

    assert (found.what, found.previous_status, found.affected) == (what, None, True)
    assert world.see(entry) == []


def test_an_event_that_leaves_gets_a_last_update_and_is_followed_to_its_end():
    world = World()
    world.see(EVENT)

    [found] = world.see(FOREIGN)
    assert (found.what, found.affected) == ("updated", False)
    assert found.changes == {"resources": {"from": [OTHER, ME], "to": [OTHER]}}

    assert world.see(replace(FOREIGN, duration=9)) == []
    assert words(world.see(started(FOREIGN))) == ["started"]
    assert words(world.see()) == ["completed"]


def test_an_event_that_left_and_is_gone_is_canceled():
    world = World()
    world.see(EVENT)
    world.see(FOREIGN)

    assert words(world.see()) == ["canceled"]


def test_an_event_that_comes_back_into_scope_is_updated():
    world = World()
    world.see(EVENT)
    world.see(FOREIGN)
    world.see(replace(FOREIGN, duration=9))

    [found] = world.see(EVENT)

    assert (found.what, found.affected, found.repeat) == ("updated", True, 1)


def test_an_announced_event_that_turns_out_not_to_be_ours_gets_a_last_update():
    world = World(vm_name=None)
    world.see(FOREIGN)

    [found] = world.see(FOREIGN, vm_name=ME)

    assert (found.what, found.affected, found.repeat) == ("updated", False, 1)
    assert found.changes == {}
    assert world.see(FOREIGN) == []


def test_an_announced_event_that_turns_out_to_be_ours_gives_nothing():
    world = World(vm_name=None)
    world.see(EVENT)

    assert world.see(EVENT, vm_name=ME) == []
    assert world.see(after=NOTICE)[0].affected is True


def test_a_wider_scope_announces_what_is_pending_and_a_narrower_one_goes_on_following():
    world = World()
    world.see(FOREIGN)
    assert words(world.see(FOREIGN, scope="all")) == ["scheduled"]

    assert world.see(FOREIGN, scope="own") == []
    assert words(world.see()) == ["canceled"]


def test_an_event_out_of_scope_is_kept_in_mind_while_settling():
    world = World()
    world.see(FOREIGN)
    world.boot()

    assert world.see() == []
    assert EVENT_ID in world.state.tracked
    assert world.see(after=SETTLING) == []
    assert world.state.tracked == {}
