"""How often one caller may ask: a bucket for each, which fills again by itself."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bridge.web.problems import ProblemDetails

_MOST_CALLERS = 1000


@dataclass(slots=True)
class Limiter:
    """*per_minute* requests of each caller, up to *burst* of them at once."""

    per_minute: int = 120
    burst: int = 60
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict)

    def check(self, caller: str) -> None:
        """Count one request; raises the problem that its caller gets when there are too many."""
        now = self.clock()
        left, since = self._buckets.pop(caller, (float(self.burst), now))
        left = min(float(self.burst), left + (now - since) * self.per_minute / 60)
        self._buckets[caller] = (max(0.0, left - 1), now)
        if len(self._buckets) > _MOST_CALLERS:
            # Whoever was silent for longest has a full bucket by now, or nearly so.
            del self._buckets[next(iter(self._buckets))]
        if left < 1:
            sentence = f"More than {self.per_minute} approvals a minute; wait a little."
            wait = (1 - left) * 60 / self.per_minute
            more = {"reason": "rate-limited"}
            raise ProblemDetails(429, sentence, more=more, Retry_After=str(max(1, round(wait))))
