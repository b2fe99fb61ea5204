"""Which keys wait after a failure, and for how long."""

from typing import Any

import pytest
from support.deliveries import soon
from support.journal_tools import about

from bridge.delivery.backoff import Waits
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
    assert wait(attempts=30, **soon(1)) == 1.0


def test_what_failed_together_is_tried_again_together():
    clock = Clock()
    holds = Waits(clock=clock)
    holds.begin([row("A"), row("B")], [BUSY, BUSY])
    soonest = holds.soonest()
    assert soonest is not None
    clock.now += soonest
    assert holds.keys() == frozenset()


def test_the_sink_says_how_long_its_key_waits():
    clock = Clock()
    holds = holds_at(clock)
    holds.begin([row("A")], [Unavailable("busy", retry_after=17.0)])
    assert holds.soonest() == 17.0
    clock.now += 16.9
    assert holds.keys() == {"A"}
    clock.now += 0.1
    assert (holds.keys(), holds.soonest()) == (frozenset(), None)


def test_releasing_all_removes_every_wait():
    holds = Waits()
    holds.begin([row("A"), row("B")], [BUSY, BUSY])
    holds.release()
    assert holds.keys() == frozenset()
