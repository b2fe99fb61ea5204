"""Interpret answers: whose clock counts, when to trust an empty body, and what is an outage."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from bridge.core.model import Document
from bridge.metadata.answers import Answer, SourceProblem

_EMPTIES = 5
_EMPTY_FOR = 10.0
_CLOCKS_AGREE = timedelta(seconds=2)
SKEWED = 60.0
"""From how many seconds on a difference of the clocks is reported."""
_HYSTERESIS = 5.0


def azure_now(date: datetime | None, local: datetime) -> datetime:
    """The answer's clock; ours if they agree, because the Date header has only whole seconds."""
    return local if date is None or abs(date - local) < _CLOCKS_AGREE else date


def clock_skew(date: datetime | None, local: datetime) -> float | None:
    """How far our clock is ahead, in seconds; 0 below the header's precision."""
    if date is None:
        return None
    ahead = local - date
    return 0.0 if abs(ahead) < _CLOCKS_AGREE else round(ahead.total_seconds(), 1)


def is_skewed(seconds: float, *, before: bool) -> bool:
    """Whether our clock is off by too much; near the limit it stays as it was *before*."""
    return abs(seconds) > (SKEWED - _HYSTERESIS if before else SKEWED)


def result_of(answer: Answer | SourceProblem) -> str:
    """What came back, in a word."""
    if isinstance(answer, SourceProblem):
        return answer.reason
    if answer.document is not None:
        return "document"
    return "empty" if answer.empty else "unchanged"


@dataclass(slots=True)
class Reader:
    """Turns answers into documents. An empty body counts only after five in a row over ten seconds.

    Azure sends an empty body when nothing is pending, and also when it is not ready.
    """

    last: Document | None = None
    _empties: int = 0
    _since: float | None = None

    def failed(self) -> None:
        """Start counting empty bodies again: those before and after an error are not in a row."""
        self._empties, self._since = 0, None

    def read(self, answer: Answer, now: float, *, tracking: bool) -> Document | None:
        """The document, or None when the answer proves nothing; *now* is monotonic."""
        if not answer.empty:
            self.failed()
            self.last = answer.document or self.last
            return self.last
        self._since = now if self._since is None else self._since
        self._empties += 1
        enough = self._empties >= _EMPTIES and now - self._since >= _EMPTY_FOR
        if tracking and not enough:
            return None
        self.last = Document(self.last.incarnation if self.last else None)
        return self.last


@dataclass(slots=True)
class Outage:
    """How long there has been no usable answer, and whether that was published.

    `since` is for people; how long it lasts is measured by the monotonic clock.
    """

    patience: float = 0.0
    since: datetime | None = None
    told: bool = False
    began: float | None = None

    def problem(self, now: datetime, monotonic: float) -> bool:
        """Record a failure; True once, when it has lasted long enough to be published."""
        self.since = self.since or now
        self.began = monotonic if self.began is None else self.began
        if self.told or monotonic - self.began < self.patience:
            return False
        self.told = True
        return True

    def good(self) -> bool:
        """Record a usable answer; True when it ends an outage that was published."""
        told, self.since, self.told, self.began = self.told, None, False, None
        return told
