"""The machine's clock."""

import time
from datetime import UTC, datetime, timedelta

from bridge.common.clock import Clock


def test_now_is_the_time_of_day_in_utc():
    found = Clock().now()
    assert found.tzinfo is UTC
    assert abs(found - datetime.now(UTC)) < timedelta(seconds=5)


def test_a_timestamp_is_now_in_seconds_since_1970():
    class Stopped(Clock):
        def now(self) -> datetime:
            return datetime(1970, 1, 2, tzinfo=UTC)

    assert Stopped().timestamp() == 86400
    assert abs(Clock().timestamp() - time.time()) < 5


def test_monotonic_seconds_do_not_follow_the_time_of_day(monkeypatch):
    clock = Clock()
    before = clock.monotonic()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= clock.monotonic() - before < 5
