"""Waiting, within bounds, for what another task or another process does."""

import asyncio
import inspect
from collections.abc import Callable

PATIENCE = 45.0


async def until(
    condition: Callable[[], object],
    what: str = "it",
    explain: Callable[[], str] = str,
    *,
    patience: float = PATIENCE,
) -> None:
    """Return when *condition* is true; it may be a coroutine function. *explain* is for failures.

    The bound is for a test that fails: one that passes never waits that long.
    """
    try:
        async with asyncio.timeout(patience):
            while not await _true(condition):
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"waited in vain for {what}\n{explain()}") from None


async def _true(condition: Callable[[], object]) -> object:
    found = condition()
    return await found if inspect.isawaitable(found) else found
