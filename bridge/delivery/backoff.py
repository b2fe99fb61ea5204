"""How long a sink waits after a failure, as a whole and for each key."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

from bridge.common.supervise import backoff
from bridge.delivery.rules import (
    MOST,
    asked_wait,
    longest_backoff,
    longest_wait,
    notice_left,
    shortest_notice,
)
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

    def left(self, key: str) -> float:
        """Seconds until the key may be tried again."""
        return self._until.get(key, 0.0) - self.clock()

    def soonest(self) -> float | None:
        """Seconds until the first key may be tried again; None if there are none."""
        first = min(self._until.values(), default=None)
        return None if first is None else first - self.clock()

    def begin(self, rows: Sequence[Row], results: Sequence[Result]) -> None:
        """Make a failed key wait; keys that failed together are tried again together."""
        now, draw = self.clock(), self.draw()
        for row, result in zip(rows, results, strict=True):
            if isinstance(result, Unavailable):
                most = longest_backoff(shortest_notice([row.event], time.time()))
                wait = backoff(row.attempts + 1, most=most, rng=lambda: draw)
                self._until[row.event.key] = now + wait

    def release(self) -> None:
        """Let all keys continue."""
        self._until.clear()


@dataclass(slots=True)
class Pause:
    """How long the whole sink waits: as the receiver asks, or by backoff before it is entered.

    The notice of the most urgent row limits both, so ask again when another row arrives. The wait
    is measured from the last failure.
    """

    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    draw: Callable[[], float] = random.random
    _since: float = 0.0
    _at: float = 0.0
    _asked_until: float = -inf
    _failures: int = 0
    _first: float = 0.5
    _most: float = MOST
    _drawn: float = 0.0

    @property
    def asked(self) -> bool:
        """Whether the receiver still wants us to stay away."""
        return self.clock() < self._asked_until

    def begin(
        self, problem: Unavailable, failures: int = 0, first: float = 0.5, most: float = MOST
    ) -> None:
        """Wait after *problem*; without *failures* only for as long as the receiver asks."""
        self._since, self._at, self._drawn = self.clock(), self.wall(), self.draw()
        self._failures, self._first, self._most = failures, first, most
        if asked := asked_wait(problem):
            self._asked_until = self._since + asked

    def left(self, start: float | None) -> float:
        """Seconds until the sink may try again; *start* is when Azure starts the next event."""
        notice = self._notice(start)
        wait = max(self._asked_until - self._since, self._backoff(notice))
        return self._since + min(wait, longest_wait(notice)) - self.clock()

    def _notice(self, start: float | None) -> float | None:
        """The notice as it was at the failure, so that the wait does not shrink with time."""
        return None if notice_left(start, self.wall()) is None else notice_left(start, self._at)

    def _backoff(self, notice: float | None) -> float:
        if not self._failures:
            return 0.0
        most = min(self._most, longest_backoff(notice))
        return backoff(self._failures, first=self._first, most=most, rng=lambda: self._drawn)

    def recovered(self) -> None:
        """The sink could be entered, or took a row: wait only for what the receiver asked for."""
        self._failures = 0

    def release(self) -> None:
        """Forget what the receiver asked for."""
        self._asked_until, self._failures = -inf, 0
