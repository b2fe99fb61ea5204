"""What a sink gets while whole batches fail: smaller batches, and every row in its turn; pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bridge.delivery.rules import MOST
from bridge.journal import Row

BREATH = 1.0
"""The longest pause between batches while a few rows may be the reason for the failures."""
QUICK = 64
"""How many batches may fail before the pauses get longer than `BREATH`."""


@dataclass(slots=True)
class SinkOutage:
    """A series of batches that failed as a whole; the first success ends it.

    Rows that fail are not the only ones that are tried: `turn` moves through everything that waits.
    So rows that make every batch fail cannot hold back the others. What is recorded after `newest`
    gets one try at once.
    """

    largest: int
    failures: int = 0
    newest: int = 0
    turn: int = 0
    reached: int = 0
    """How far the latest batch moved through what waits."""
    limit: int = field(init=False)

    def __post_init__(self) -> None:
        self.limit = self.largest

    @property
    def lasts(self) -> bool:
        return self.failures > 0

    def begin(self, newest: int, rows: Sequence[Row]) -> None:
        self.newest, self.reached = newest, rows[-1].seq if rows else 0

    def count(self, rows: Sequence[Row]) -> None:
        """Note one more batch that failed, or a lost connection without rows."""
        self.failures, self.turn = self.failures + 1, self.reached
        if rows:
            self.limit = max(1, len(rows) // 2)

    def count_new(self, rows: Sequence[Row]) -> bool:
        """Note that new rows failed; return whether to look among them for the reason."""
        self.newest = max(row.seq for row in rows)
        if len(rows) == 1:
            return False
        self.failures, self.reached = 0, rows[0].seq - 1
        return True

    def end(self) -> None:
        """A row arrived: let batches grow again."""
        self.failures, self.limit = 0, min(self.largest, self.limit * 2)

    @property
    def pace(self) -> tuple[int, float, float]:
        """How the pause before the next batch grows: failures, first and longest wait."""
        late = self.failures - QUICK
        return (late, BREATH, MOST) if late > 0 else (self.failures, BREATH / 16, BREATH)
