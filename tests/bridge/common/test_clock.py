"""The clock that a bridge has unless a test gives it another."""

import time
from datetime import UTC, datetime

from bridge.common.clock import Clock


def test_now_is_the_time_of_day_in_utc():
    before, now, after = datetime.now(UTC), Clock().now(), datetime.now(UTC)
    assert before <= now <= after
    assert now.tzinfo is UTC


def test_a_timestamp_is_now_in_seconds():
    before, stamp, after = time.time(), Clock().timestamp(), time.time()
    assert before - 0.001 <= stamp <= after + 0.001


def test_monotonic_never_goes_back():
    clock = Clock()
    assert clock.monotonic() <= clock.monotonic()
