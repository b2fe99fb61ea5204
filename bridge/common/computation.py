"""Long computations, which must not hold up the event loop."""

import asyncio
import gc
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def computed(call: Callable[[], T], *, long: bool) -> T:
    """The result of *call*, which is pure; in a thread if it may take *long*.

    A thread costs more than a short computation. If the caller is canceled, it runs to its end.
    """
    return await asyncio.to_thread(_undisturbed, call) if long else call()


def _undisturbed(call: Callable[[], T]) -> T:
    """Without searches for cycles: each would stop all threads, and values have no cycles."""
    searches = gc.isenabled()
    gc.disable()
    try:
        return call()
    finally:
        if searches:
            gc.enable()
