"""Interpret answers: whose clock counts, when to trust an empty body, and what is an outage."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from bridge.core.model import Document
from bridge.metadata.answers import Answer

_EMPTIES = 5
_EMPTY_FOR = timedelta(seconds=10)
_CLOCKS_AGREE = timedelta(seconds=2)


def azure_now(date: datetime | None, local: datetime) -> datetime:
    """The answer's clock; ours if they agree, because the Date header has only whole seconds."""
    return local if date is None or abs(date - local) < _CLOCKS_AGREE else date


def clock_skew(date: datetime | None, local: datetime) -> float | None:
    """How far our clock is ahead, in seconds; 0 below the header's precision."""
    if date is None:
        return None
    ahead = local - date
    return 0.0 if abs(ahead) < _CLOCKS_AGREE else round(ahead.total_seconds(), 1)


@dataclass(slots=True)
class Reader:
    """Turns answers into documents. An empty body counts only after five in a row over ten seconds.

    Azure sends an empty body when nothing is pending, and also when it is not ready.
    """

    last: Document | None = None
    _empties: int = 0
    _since: datetime | None = None

    def failed(self) -> None:
        """Start counting empty bodies again: those before and after an error are not in a row."""
        self._empties, self._since = 0, None

    def read(self, answer: Answer, now: datetime, *, tracking: bool) -> Document | None:
        """The document, or None when the answer proves nothing."""
        if not answer.empty:
            self.failed()
            self.last = answer.document or self.last
            return self.last
        self._since = self._since or now
        self._empties += 1
        enough = self._empties >= _EMPTIES and now - self._since >= _EMPTY_FOR
        if tracking and not enough:
            return None
        self.last = Document(self.last.incarnation if self.last else None)
        return self.last


@dataclass(slots=True)
class Outage:
    """How long there has been no usable answer, and whether that was published."""

    patience: timedelta
    since: datetime | None = None
    told: bool = False

    def problem(self, now: datetime) -> bool:
        """Record a failure; True once, when it has lasted long enough to be published."""
        self.since = self.since or now
        if self.told or now - self.since < self.patience:
            return False
        self.told = True
        return True

    def good(self) -> bool:
        """Record a usable answer; True when it ends an outage that was published."""
        told, self.since, self.told = self.told, None, False
        return told
