"""Boots and the time after them: what a missing event proves, and when."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.world import ME, NOON, NOTICE, OTHER, SECOND, World, scheduled_event, started, words

from bridge.core.diff import SETTLING, SILENCE

EVENT = scheduled_event()
MINUTE = timedelta(minutes=1)


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
def test_a_boot_ends_a_scheduled_event_of_this_vm_unless_it_is_a_freeze(event, facts, what):
    world = World(**facts)
    world.see(event)
    world.boot()

    assert world.see(after=MINUTE) == []
    [found] = world.see(after=SETTLING)

    assert (found.what, found.inferred) == (what, True)


def test_a_name_learned_after_the_boot_still_identifies_our_event():
    world = World(vm_name=None)
    world.see(EVENT)
    world.boot()
    world.see(vm_name=ME)

    [found] = world.see(after=SETTLING)

    assert (found.what, found.affected) == ("completed", True)


def test_an_event_seen_again_after_a_boot_is_not_completed():
    world = World()
    world.see(EVENT)
    world.boot()
    world.see(EVENT)

    assert words(world.see(after=SETTLING)) == ["canceled"]


def test_an_unknown_boot_id_is_not_a_boot():
    world = World(boot_id=None)
    world.see(EVENT)
    assert words(world.see(boot_id="boot-1")) == ["canceled"]

    world.see(scheduled_event("B"))
    assert words(world.see(boot_id=None)) == ["canceled"]
    assert world.state.boot_id == "boot-1"


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
def test_a_started_event_ends_immediately_even_while_settling(upset):
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


def test_an_absence_that_ended_no_longer_counts():
    world = World()
    world.see(replace(EVENT, event_type="Freeze"))
    world.boot()
    world.see()
    world.see(replace(EVENT, event_type="Freeze"))

    assert words(world.see(after=NOTICE)) == ["completed"]


def test_a_gap_of_exactly_a_day_is_not_too_long():
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
def test_only_a_lower_incarnation_starts_settling(before, after, down):
    world = World()
    world.see(EVENT, incarnation=before)

    assert words(world.see(incarnation=after)) == ([] if down else ["canceled"])
    assert world.state.incarnation == after


def test_an_equal_incarnation_does_not_hide_a_change():
    world = World()
    world.see(incarnation=1)

    assert words(world.see(EVENT, incarnation=1)) == ["scheduled"]
