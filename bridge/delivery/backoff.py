"""Which keys of a sink must wait after a failure, and for how long."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bridge.common.supervise import backoff
from bridge.delivery.rules import asked_wait, longest_wait, shortest_notice
from bridge.journal import Row
from bridge.plugins import Result, Unavailable


@dataclass(slots=True)
class Waits:
    """Keys that failed, each with the time until which it waits."""

    clock: Callable[[], float] = time.monotonic
    draw: Callable[[], float] = random.random
    _until: dict[str, float] = field(default_factory=dict)

    def keys(self) -> frozenset[str]:
        """The keys that must still wait."""
        now = self.clock()
        self._until = {key: until for key, until in self._until.items() if until > now}
        return frozenset(self._until)

    def soonest(self) -> float | None:
        """Seconds until the first key may be tried again; None if there are none."""
        first = min(self._until.values(), default=None)
        return None if first is None else first - self.clock()

    def begin(self, rows: Sequence[Row], results: Sequence[Result]) -> None:
        """Make a failed key wait; keys that failed together are tried again together."""
        now, draw = self.clock(), self.draw()
        for row, result in zip(rows, results, strict=True):
            if isinstance(result, Unavailable):
                most = longest_wait(shortest_notice([row.event], time.time()))
                wait = backoff(row.attempts + 1, most=most, rng=lambda: draw)
                self._until[row.event.key] = now + (asked_wait(result) or wait)

    def release(self) -> None:
        """Let all keys continue."""
        self._until.clear()
