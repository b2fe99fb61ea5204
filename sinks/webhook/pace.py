"""How many requests a minute a receiver agreed to."""

from collections import deque
from dataclasses import dataclass, field

MINUTE = 60.0


@dataclass(slots=True)
class Pace:
    """A sliding minute: as many requests as *rate* may go at once, and then none for a while."""

    rate: int
    _gone: deque[float] = field(default_factory=deque)

    def take(self, now: float) -> float:
        """0 when a request may go now, which then counts; else the seconds until one may."""
        while self._gone and self._gone[0] <= now - MINUTE:
            self._gone.popleft()
        if len(self._gone) >= self.rate:
            return self._gone[0] + MINUTE - now
        self._gone.append(now)
        return 0.0
