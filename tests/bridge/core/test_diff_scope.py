"""Whose scheduled events are announced: those of this VM, or all."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.world import EVENT_ID, ME, NOTICE, OTHER, World, scheduled_event, started, words

from bridge.core.diff import SETTLING

EVENT = scheduled_event()
MINUTE = timedelta(minutes=1)
FOREIGN = replace(EVENT, resources=(OTHER,))


def test_the_events_of_other_vms_are_not_published_under_scope_own():
    world = World()
    found = [*world.see(FOREIGN), *world.see(started(FOREIGN)), *world.see()]

    assert found == []


def test_the_events_of_other_vms_are_published_under_scope_all():
    world = World(scope="all")
    found = [*world.see(FOREIGN), *world.see(started(FOREIGN)), *world.see()]

    assert words(found) == ["scheduled", "started", "completed"]
    assert {each.affected for each in found} == {False}


def test_nothing_is_dropped_while_the_name_is_unknown():
    world = World(vm_name=None)
    found = [*world.see(FOREIGN), *world.see(started(FOREIGN)), *world.see()]

    assert words(found) == ["scheduled", "started", "completed"]
    assert {each.affected for each in found} == {None}


def test_the_comparison_of_names_ignores_case():
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


def test_an_event_that_leaves_the_scope_and_disappears_is_canceled():
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


def test_an_event_out_of_scope_is_tracked_while_settling():
    world = World()
    world.see(FOREIGN)
    world.boot()

    assert world.see() == []
    assert EVENT_ID in world.state.tracked
    assert world.see(after=SETTLING) == []
    assert world.state.tracked == {}
