"""The clock; injected, so that a test can set the time."""

import time
from datetime import UTC, datetime


class Clock:
    """The machine's clock: the time of day, and monotonic seconds."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def timestamp(self) -> float:
        """Seconds since 1970, as the journal records them."""
        return self.now().timestamp()

    def monotonic(self) -> float:
        return time.monotonic()
