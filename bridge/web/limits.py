"""Rate limits: a token bucket for each caller."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bridge.web.problems import ProblemDetails

_MOST_CALLERS = 1000


@dataclass(slots=True)
class Limiter:
    """Allows each caller *per_minute* requests, up to *burst* of them together."""

    per_minute: int = 120
    burst: int = 60
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)

    def check(self, caller: str) -> None:
        """Count one request; raise a problem document if there are too many."""
        now = self.clock()
        left, since = self._buckets.pop(caller, (float(self.burst), now))
        left = min(float(self.burst), left + (now - since) * self.per_minute / 60)
        self._buckets[caller] = (max(0.0, left - 1), now)
        if len(self._buckets) > _MOST_CALLERS:
            # The caller that was idle for longest has a full bucket by now, or almost.
            del self._buckets[next(iter(self._buckets))]
        if left < 1:
            sentence = f"More than {self.per_minute} approvals per minute; try again later."
            wait = (1 - left) * 60 / self.per_minute
            more = {"reason": "rate-limited"}
            raise ProblemDetails(429, sentence, more=more, Retry_After=str(max(1, round(wait))))
