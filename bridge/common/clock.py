"""What time it is; injected, so that a test can set it."""

import time
from datetime import UTC, datetime


class Clock:
    """The machine's own clock: the time of day, and seconds that nobody can set back."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
