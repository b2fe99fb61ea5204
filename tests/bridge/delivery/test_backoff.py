"""How long a sink waits after a failure, as a whole and for each key."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.deliveries import soon
from support.journal_tools import about

from bridge.delivery.backoff import Pause, Waits
from bridge.journal import Row
from bridge.plugins import Rejected, Unavailable

BUSY = Unavailable("busy")


def row(key: str, attempts: int = 0, **data: Any) -> Row:
    return Row(1, about(key, **data), 0.0, attempts)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def holds_at(clock: Clock) -> Waits:
    """Every wait is as long as it can be."""
    return Waits(clock=clock, draw=lambda: 1.0)


def wait(**failed: Any) -> float:
    """How long a key waits after this failure."""
    holds = holds_at(Clock())
    holds.begin([row("A", **failed)], [BUSY])
    found = holds.soonest()
    assert found is not None
    return found


def test_only_the_key_that_failed_waits():
    holds = Waits()
    holds.begin([row("A"), row("B"), row("C")], [BUSY, None, Rejected("no")])
    assert holds.keys() == {"A"}


def test_no_key_waits_at_first():
    assert (Waits().keys(), Waits().soonest()) == (frozenset(), None)


def test_a_wait_grows_with_the_attempts():
    assert wait() < wait(attempts=1) < wait(attempts=3)


def test_a_wait_is_short_when_there_is_little_notice():
    assert wait(attempts=30, **soon(100)) == pytest.approx(10.0, abs=0.5)
    assert wait(attempts=30, **soon(1)) == pytest.approx(0.1, abs=0.05)


def test_what_failed_together_is_tried_again_together():
    clock = Clock()
    holds = Waits(clock=clock)
    holds.begin([row("A"), row("B")], [BUSY, BUSY])
    soonest = holds.soonest()
    assert soonest is not None
    clock.now += soonest
    assert holds.keys() == frozenset()


def test_releasing_all_removes_every_wait():
    holds = Waits()
    holds.begin([row("A"), row("B")], [BUSY, BUSY])
    holds.release()
    assert holds.keys() == frozenset()


def in_seconds(seconds: float, clock: Clock) -> float:
    """A start that gives this much notice, by the clock of the test."""
    return clock.now + seconds


def pause_at(clock: Clock, draw: float = 1.0) -> Pause:
    return Pause(clock=clock, wall=clock, draw=lambda: draw)


def asking(seconds: float) -> Unavailable:
    return Unavailable("later", retry_after=seconds)


def test_a_sink_that_never_failed_does_not_wait():
    pause = pause_at(Clock())
    assert not pause.asked
    assert pause.left(None) < 0


@given(st.floats(0, 7200), st.integers(0, 40), st.floats(0, 1), st.floats(0.1, 1e5))
def test_the_pause_follows_the_formula(asked, failures, draw, notice):
    clock = Clock()
    pause = pause_at(clock, draw)
    pause.begin(asking(asked), failures)
    most = min(30.0, notice / 10)
    backoff = draw * min(most, 0.5 * 2.0 ** (failures - 1)) if failures else 0.0
    expected = min(max(min(asked, 3600), backoff), max(1.0, notice / 3))
    assert pause.left(in_seconds(notice, clock)) == pytest.approx(expected, abs=1e-3)
    assert pause.left(None) >= pause.left(in_seconds(notice, clock)) - 1e-3


def test_a_wait_is_measured_from_the_failure_and_shortened_by_what_arrives_later():
    clock = Clock()
    pause = pause_at(clock)
    pause.begin(asking(60))
    clock.now += 5
    assert pause.left(None) == 55
    assert pause.left(in_seconds(25, clock)) == pytest.approx(30 / 3 - 5)
    clock.now += 20
    assert pause.left(in_seconds(25, clock)) < 0


def test_a_wait_does_not_shrink_while_it_lasts():
    clock = Clock()
    pause, urgent = pause_at(clock), in_seconds(30, clock)
    pause.begin(asking(60))
    clock.now += 9
    assert pause.left(urgent) == pytest.approx(1.0)


def test_with_no_notice_left_what_was_asked_is_kept():
    clock = Clock()
    pause, past = pause_at(clock), in_seconds(2, clock)
    pause.begin(asking(60))
    clock.now += 3
    assert pause.left(past) == 57


def test_an_attempt_that_fails_without_asking_keeps_what_was_asked_before():
    clock = Clock()
    pause = pause_at(clock)
    pause.begin(asking(60))
    clock.now += 10
    pause.begin(BUSY)
    assert pause.asked
    assert pause.left(None) == 50
    assert pause.left(in_seconds(30, clock)) == pytest.approx(10)


def test_a_later_wish_replaces_an_earlier_one():
    clock = Clock()
    pause = pause_at(clock)
    pause.begin(asking(3600))
    pause.begin(asking(5))
    assert pause.left(None) == 5


def test_after_a_recovery_only_what_was_asked_counts():
    clock = Clock()
    pause = pause_at(clock)
    pause.begin(asking(2), 30)
    assert pause.left(None) == 30
    pause.recovered()
    assert pause.left(None) == 2
    pause.release()
    assert (pause.asked, pause.left(None)) == (False, 0)
