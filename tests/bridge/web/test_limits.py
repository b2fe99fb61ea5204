"""How often one caller may ask."""

import pytest

from bridge.web.limits import Limiter
from bridge.web.problems import ProblemDetails


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_bucket_empties_and_fills_again():
    clock = Clock()
    limiter = Limiter(per_minute=60, burst=3, clock=clock)
    for _ in range(3):
        limiter.delay("a", most=0)
    with pytest.raises(ProblemDetails) as caught:
        limiter.delay("a", most=0)
    assert (caught.value.status, caught.value.headers["Retry-After"]) == (429, "1")
    limiter.delay("b", most=0)
    clock.now += 1.0
    limiter.delay("a", most=0)
    with pytest.raises(ProblemDetails):
        limiter.delay("a", most=0)
    clock.now += 1000.0
    for _ in range(3):
        limiter.delay("a", most=0)


def test_a_caller_that_ignores_the_limit_is_not_locked_out_forever():
    clock = Clock()
    limiter = Limiter(per_minute=60, burst=1, clock=clock)
    limiter.delay("a", most=0)
    for _ in range(100):
        with pytest.raises(ProblemDetails):
            limiter.delay("a", most=0)
    clock.now += 1.0
    limiter.delay("a", most=0)


def test_a_caller_that_waits_gets_one_turn_after_the_other():
    clock = Clock()
    limiter = Limiter(per_minute=60, burst=2, clock=clock)
    assert [limiter.delay("a") for _ in range(5)] == [0.0, 0.0, 1.0, 2.0, 3.0]
    with pytest.raises(ProblemDetails) as caught:
        limiter.delay("a", most=3.5)
    assert caught.value.headers["Retry-After"] == "4"
    clock.now += 3.0
    assert limiter.delay("a", most=3.5) == 1.0


def test_no_more_callers_are_remembered_than_fit():
    limiter = Limiter(clock=Clock())
    for number in range(5000):
        limiter.delay(f"caller {number}")
    assert len(limiter._buckets) == 1000
