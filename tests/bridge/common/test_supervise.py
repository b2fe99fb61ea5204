import asyncio
import logging

import pytest

from bridge.common.supervise import attempt, backoff, supervise
from bridge.plugins import Unavailable


class World:
    """A clock that moves only when code sleeps or works, and records the sleeps."""

    def __init__(self, most: int = 5) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.most = most

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        if len(self.slept) == self.most:
            raise asyncio.CancelledError

    async def run(self, session, **options):
        with pytest.raises(asyncio.CancelledError):
            await supervise(
                "test", session, sleep=self.sleep, clock=lambda: self.now, rng=lambda: 1, **options
            )


def test_waits_double_up_to_the_most():
    waits = [backoff(n, first=0.5, most=5, rng=lambda: 1) for n in range(1, 7)]
    assert waits == [0.5, 1, 2, 4, 5, 5]


def test_jitter_takes_any_part_of_the_wait():
    assert backoff(3, first=1, most=60, rng=lambda: 0) == 0
    assert backoff(3, first=1, most=60, rng=lambda: 0.25) == 1
    assert all(0 <= backoff(4) <= 4 for _ in range(200))


def test_very_many_attempts_do_not_overflow():
    assert backoff(10**9, first=0.5, most=60, rng=lambda: 1) == 60
    assert backoff(0, first=0.5, most=60, rng=lambda: 1) == 0.5


async def test_a_session_that_fails_or_ends_is_started_again():
    world = World(most=4)
    outcomes = iter([ValueError("one"), None, ValueError("three"), None])
    heard = []

    async def session() -> None:
        if error := next(outcomes):
            raise error

    await world.run(session, on_failure=lambda error, wait: heard.append((str(error), wait)))
    assert heard == [("one", 0.5), ("None", 1), ("three", 2), ("None", 4)]
    assert world.slept == [0.5, 1, 2, 4]


async def test_a_session_that_outlived_its_wait_counts_as_the_first_again():
    world = World(most=5)
    lasting = iter([0, 0, 0, 100, 0])

    async def session() -> None:
        world.now += next(lasting)
        raise ValueError

    await world.run(session, first=1, most=60)
    assert world.slept == [1, 2, 4, 1, 2]


async def test_a_problem_may_ask_for_a_longer_wait_within_reason():
    world = World(most=3)
    asked = iter([60.0, 9999.0, None])

    async def session() -> None:
        raise Unavailable("not now", retry_after=next(asked))

    await world.run(session, asked=300.0)
    assert world.slept == [60.0, 300.0, 2]


async def test_each_failure_is_logged_by_name(caplog):
    async def session() -> None:
        raise ValueError("broken")

    with caplog.at_level(logging.WARNING, logger="bridge.common.supervise"):
        await World(most=1).run(session)
    [record] = caplog.records
    assert (record.msg, record.task, record.error) == (
        "task.failed",
        "test",
        "ValueError('broken')",
    )


async def test_a_caller_with_on_failure_logs_failures_itself(caplog):
    async def session() -> None:
        raise ValueError("broken")

    told = []
    with caplog.at_level(logging.INFO, logger="bridge.common.supervise"):
        await World(most=1).run(session, on_failure=lambda problem, wait: told.append(problem))
    assert caplog.records == []
    assert [repr(problem) for problem in told] == ["ValueError('broken')"]


async def test_a_group_of_failures_is_one_failure():
    async def session() -> None:
        raise ExceptionGroup("several", [ValueError()])

    await World(most=2).run(session)


async def test_cancelling_ends_it():
    entered = asyncio.Event()

    async def session() -> None:
        entered.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(supervise("test", session))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_that_a_library_leaks_is_an_ordinary_failure():
    world = World(most=3)
    heard = []

    async def session() -> None:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    await world.run(session, on_failure=lambda error, _: heard.append(type(error)))
    assert heard == [asyncio.CancelledError] * 3


async def test_one_attempt_returns_what_it_got_or_says_unavailable():
    async def work(outcome: object) -> object:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    assert await attempt(work("fine"), 5) == "fine"
    refused = Unavailable("later", retry_after=3)
    assert await attempt(work(refused), 5) is refused
    for error in (OSError("gone"), asyncio.CancelledError("gone")):
        problem = await attempt(work(error), 5)
        assert isinstance(problem, Unavailable)
        assert str(problem) == "gone"


async def test_an_attempt_that_takes_too_long_is_unavailable():
    problem = await attempt(asyncio.Event().wait(), 0.01)
    assert isinstance(problem, Unavailable)
    assert str(problem) == "no answer within 0.01 s"
