"""What time it is; injected, so that a test can set it."""

import time
from datetime import UTC, datetime


class Clock:
    """The machine's own clock: the time of day, and seconds that nobody can set back."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def timestamp(self) -> float:
        """Seconds since 1970, as the journal notes them."""
        return self.now().timestamp()

    def monotonic(self) -> float:
        return time.monotonic()
