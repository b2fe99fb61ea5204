import asyncio

import pytest

from bridge.metadata.budget import Budget


class Clock:
    """Time that passes only during sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def budget(clock):
    return Budget(clock=clock, sleep=clock.sleep)


async def taken(budget: Budget, clock: Clock, count: int) -> list[float]:
    times: list[float] = []

    async def one() -> None:
        await budget.take()
        times.append(clock())

    await asyncio.gather(*(one() for _ in range(count)))
    return times


async def test_a_burst_never_has_more_than_five_in_any_second(budget, clock):
    times = await taken(budget, clock, 23)
    assert all(later - earlier >= 1.0 for earlier, later in zip(times, times[5:], strict=False))


async def test_a_burst_takes_no_longer_than_it_must(budget, clock):
    times = await taken(budget, clock, 23)
    assert times[-1] - times[0] == pytest.approx(4.0)


async def test_one_request_per_second_never_waits(budget, clock):
    for _ in range(20):
        before = clock()
        await budget.take()
        assert clock() == before
        clock.now += 1.0


async def test_requests_are_sent_in_the_order_of_arrival(budget):
    order: list[int] = []

    async def one(number: int) -> None:
        await budget.take()
        order.append(number)

    await asyncio.gather(*(one(number) for number in range(12)))
    assert order == list(range(12))


async def test_a_canceled_wait_uses_no_budget(budget, clock):
    await taken(budget, clock, 5)
    waiting = asyncio.create_task(budget.take())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    times = await taken(budget, clock, 5)
    assert times[-1] - 100.0 == pytest.approx(1.0)


async def test_a_clock_that_sleeps_too_short_is_asked_again(clock):
    async def half(seconds: float) -> None:
        await clock.sleep(max(seconds / 2, 0.01))

    budget = Budget(limit=1, clock=clock, sleep=half)
    times = await taken(budget, clock, 3)
    assert times[1] - times[0] >= 1.0
    assert times[2] - times[1] >= 1.0
