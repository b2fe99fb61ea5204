"""The state of scheduled events and drills."""

import pytest
from support.world import scheduled_event

from bridge.core.state import REHEARSED, State, Tracked, Transition


@pytest.mark.parametrize(("life", "drill"), [(REHEARSED, True), (1, False), (2, False)])
def test_only_a_drill_has_the_life_of_a_drill(life, drill):
    assert Tracked(scheduled_event(), life=life).drill is drill
    assert Transition("started", scheduled_event(), life, affected=True).drill is drill


def test_an_event_begins_its_first_life_unannounced():
    known = Tracked(scheduled_event())
    assert (known.life, known.announced, known.drill) == (1, False, False)
    assert (known.missing_since, known.since) == (None, None)


def test_nothing_is_known_before_the_first_document():
    state = State()
    assert not state.tracked
    assert not state.ended
    assert (state.incarnation, state.last_good, state.settle_until) == (None, None, None)
