"""Rate limits: a token bucket for each caller."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bridge.web.problems import ProblemDetails

_MOST_CALLERS = 1000


@dataclass(slots=True)
class Limiter:
    """Gives each caller *per_minute* turns, up to *burst* of them together."""

    per_minute: int = 120
    burst: int = 60
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)

    def delay(self, caller: str, most: float = math.inf) -> float:
        """Count one request; return after how many seconds it is its turn.

        Raises a problem document if that is more than *most*; the request does not count then.
        """
        now = self.clock()
        left, since = self._buckets.pop(caller, (float(self.burst), now))
        left = min(float(self.burst), left + (now - since) * self.per_minute / 60)
        wait = max(0.0, (1 - left) * 60 / self.per_minute)
        self._buckets[caller] = (left if wait > most else left - 1, now)
        if len(self._buckets) > _MOST_CALLERS:
            # The caller that was idle for longest has a full bucket by now, or almost.
            del self._buckets[next(iter(self._buckets))]
        if wait > most:
            sentence = f"More than {self.per_minute} approvals per minute; try again later."
            more = {"reason": "rate-limited"}
            raise ProblemDetails(429, sentence, more=more, Retry_After=str(max(1, round(wait))))
        return wait
