"""Limit requests per second: Azure allows five, for all programs on a VM together."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable


class Budget:
    """A sliding window, first come, first served. Share one among all users of the endpoint."""

    def __init__(
        self,
        limit: int = 5,
        period: float = 1.0,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._period = period
        self._clock = clock
        self._sleep = sleep
        self._recent: deque[float] = deque(maxlen=limit)
        self._queue = asyncio.Lock()

    async def take(self) -> None:
        """Return when one more request may be sent."""
        async with self._queue:
            while (wait := self._wait()) > 0:
                await self._sleep(wait)
            self._recent.append(self._clock())

    def _wait(self) -> float:
        if len(self._recent) < (self._recent.maxlen or 0):
            return 0.0
        return self._recent[0] + self._period - self._clock()
