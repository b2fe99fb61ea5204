"""Clocks that a test sets, for a bridge that is given one."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bridge.common.clock import Clock


@dataclass(slots=True)
class ShiftedClock(Clock):
    """The machine's clock, as far ahead as a test says; `stepped` moves only the time of day."""

    ahead: timedelta = timedelta()
    stepped: timedelta = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead + self.stepped

    def monotonic(self) -> float:
        return Clock.monotonic(self) + self.ahead.total_seconds()


@dataclass(slots=True)
class StillClock(Clock):
    """A clock that moves only when a test moves it."""

    moment: datetime = field(default_factory=lambda: datetime.now(UTC))

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.moment.timestamp()
