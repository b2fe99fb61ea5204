"""Events that return after their end was announced."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.world import OTHER, SECOND, World, scheduled_event

from bridge.core.diff import REMEMBERED, SETTLING

EVENT = scheduled_event()
MINUTE = timedelta(minutes=1)


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


def test_an_unpublished_end_out_of_scope_does_not_count_as_a_life():
    world = World()
    foreign = replace(EVENT, resources=(OTHER,))
    assert world.see(foreign) == []
    assert world.see() == []
    assert world.state.ended == {}

    assert world.see(EVENT)[0].life == 1


def test_an_old_end_is_forgotten_whatever_ended_before_it():
    world = World()
    for name in ("A", "B"):
        world.see(scheduled_event(name))
        world.see()
    world.see(scheduled_event("A"), after=REMEMBERED / 2)
    world.see(after=SETTLING + SECOND)
    assert list(world.state.ended) == ["B", "A"]
    world.see(after=REMEMBERED / 2 + SECOND)
    assert list(world.state.ended) == ["A"]


def test_a_clock_that_was_set_back_does_not_change_how_long_an_end_counts():
    world = World()
    world.see(scheduled_event("A"))
    world.see()
    world.see(scheduled_event("B"))
    world.see(after=-timedelta(hours=1))
    (found,) = world.see(scheduled_event("B"), after=REMEMBERED)
    assert found.life == 1


def test_while_nothing_ends_the_ends_are_not_copied():
    world = World()
    world.see(scheduled_event("A"))
    world.see()
    before = world.state.ended
    world.see(scheduled_event("B"))
    assert world.state.ended is before
