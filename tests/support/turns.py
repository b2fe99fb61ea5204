"""How much one turn of the event loop takes of what all threads compute meanwhile."""

import asyncio
import contextlib
import gc
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass


@dataclass(slots=True)
class Turns:
    """In seconds of CPU time, so that other programs do not count."""

    longest: float = 0.0
    whole: float = 0.0


@contextlib.asynccontextmanager
async def turns() -> AsyncGenerator[Turns]:
    """Watch the loop: the longest time that its thread computes before another task is served."""
    gc.freeze()  # what other tests have left is not searched for garbage meanwhile
    found, began = Turns(), time.process_time()

    async def watch() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            found.longest = max(found.longest, time.thread_time() - before)

    task = asyncio.create_task(watch())
    await asyncio.sleep(0)
    try:
        yield found
        await asyncio.sleep(0.002)
    finally:
        task.cancel()
        gc.unfreeze()
        found.whole = time.process_time() - began
