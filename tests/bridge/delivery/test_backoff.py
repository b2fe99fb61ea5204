"""Which keys wait after a failure, and for how long."""

import pytest
from support.deliveries import soon
from support.journal_tools import about

from bridge.delivery.backoff import Holds
from bridge.journal import Row
from bridge.plugins import Rejected, Unavailable

BUSY = Unavailable("busy")


def row(key: str, attempts: int = 0, **data: object) -> Row:
    return Row(1, about(key, **data), 0.0, attempts, None)


def test_only_the_key_that_failed_waits():
    holds = Holds()
    holds.hold([row("A"), row("B"), row("C")], [BUSY, None, Rejected("no")])
    assert holds.keys() == {"A"}


def test_nobody_waits_at_first_and_nothing_is_soonest():
    assert (Holds().keys(), Holds().soonest()) == (frozenset(), None)


def test_a_wait_grows_with_the_attempts_and_what_failed_together_waits_alike():
    first, later = Holds(), Holds()
    first.hold([row("A"), row("B")], [BUSY, BUSY])
    later.hold([row("A", attempts=6)], [BUSY])
    assert len(set(first._until.values())) == 1
    assert first.soonest() < later.soonest()


def test_the_sink_says_how_long_its_key_waits():
    holds = Holds()
    holds.hold([row("A")], [Unavailable("busy", retry_after=17.0)])
    assert holds.soonest() == pytest.approx(17.0, abs=1.0)


def test_a_wait_is_short_when_there_is_little_notice():
    patient, hasty = Holds(), Holds()
    patient.hold([row("A", attempts=30)], [BUSY])
    hasty.hold([row("A", attempts=30, **soon(10))], [BUSY])
    assert hasty.soonest() < patient.soonest()


def test_a_wait_that_is_over_is_forgotten():
    holds = Holds()
    holds.hold([row("A")], [Unavailable("busy", retry_after=1.0)])
    holds._until["A"] -= 2.0
    assert (holds.keys(), holds.soonest()) == (frozenset(), None)


def test_all_are_released_at_once():
    holds = Holds()
    holds.hold([row("A"), row("B")], [BUSY, BUSY])
    holds.release()
    assert holds.keys() == frozenset()
