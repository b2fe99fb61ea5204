"""At most so many requests in any second: Azure allows five, for all programs of a VM together."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable


class Budget:
    """A sliding window, in the order of arrival. Share one among all that talk to the endpoint."""

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
        """Return when one more request may leave."""
        async with self._queue:
            while (wait := self._wait()) > 0:
                await self._sleep(wait)
            self._recent.append(self._clock())

    def _wait(self) -> float:
        if len(self._recent) < (self._recent.maxlen or 0):
            return 0.0
        return self._recent[0] + self._period - self._clock()
