"""The one retry policy, and the only place that catches every exception."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeVar

from bridge.common.errors import Unavailable

log = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[], Awaitable[object]]


def backoff(
    attempt: int,
    *,
    first: float = 0.5,
    most: float = 60.0,
    rng: Callable[[], float] = random.random,
) -> float:
    """Seconds to wait after failure number *attempt*, counted from 1: full jitter below a ceiling.

    The ceiling is *first* and doubles with each attempt, up to *most*.
    """
    return rng() * ceiling(attempt, first=first, most=most)


def ceiling(attempt: int, *, first: float, most: float) -> float:
    """The longest wait after failure number *attempt*."""
    return min(most, first * 2.0 ** min(max(attempt, 1) - 1, 60))


async def supervise(
    name: str,
    session: Work,
    *,
    first: float = 0.5,
    most: float = 60.0,
    on_failure: Callable[[BaseException | None, float], object] | None = None,
    asked: float = 0.0,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    clock: Callable[[], float] | None = None,
    rng: Callable[[], float] = random.random,
) -> NoReturn:
    """Keep *session* running until canceled; a failure in it never reaches another.

    It starts again after `backoff`, and one that outlived the longest wait so far counts as the
    first again. *on_failure* gets the exception, None when the session just ended, and the seconds
    until the next start. An `Unavailable` that asks for a longer wait gets it, up to *asked*.
    """
    now = clock or asyncio.get_running_loop().time
    attempt = 0
    while True:
        began = now()
        problem = await _problem(session)
        if attempt and now() - began > ceiling(attempt, first=first, most=most):
            attempt = 0
        attempt += 1
        wait = max(backoff(attempt, first=first, most=most, rng=rng), min(_wish(problem), asked))
        said = "ended" if problem is None else repr(problem)
        # The caller logs it in its own words, once per change of state.
        level = logging.DEBUG if on_failure else logging.WARNING
        log.log(level, "task.failed", extra={"task": name, "error": said, "wait": wait})
        if on_failure is not None:
            on_failure(problem, wait)
        await sleep(wait)


def _wish(problem: BaseException | None) -> float:
    return (problem.retry_after or 0.0) if isinstance(problem, Unavailable) else 0.0


async def heard(news: asyncio.Event, seconds: float | None) -> bool:
    """Wait for news; True when there was some in time."""
    try:
        async with asyncio.timeout(seconds):
            return await news.wait()
    except TimeoutError:
        return False


async def attempt(work: Awaitable[T], timeout: float) -> T | Unavailable:
    """Try something foreign once: any exception, and a timeout too, becomes `Unavailable`."""
    result: list[T] = []

    async def tried() -> None:
        async with asyncio.timeout(timeout):
            result.append(await work)

    problem = await _problem(tried)
    if problem is None:
        return result[0]
    if isinstance(problem, Unavailable):
        return problem
    if isinstance(problem, TimeoutError):
        return Unavailable(f"no answer within {timeout:g} s")
    return Unavailable(str(problem) or repr(problem))


async def _problem(session: Work) -> BaseException | None:
    try:
        await session()
    except asyncio.CancelledError as error:
        # A library may leak its own cancellation; only one of this task is meant for us.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return error
    except Exception as error:  # noqa: BLE001  the one place that catches everything
        return error
    return None
