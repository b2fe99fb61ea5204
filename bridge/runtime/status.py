"""The current status of the bridge's parts, for probes, metrics and the API."""

import asyncio
from bisect import bisect_left
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from bridge.runtime.refusals import UnpublishedRefusals

STUCK = 150.0
"""The first request to the metadata service may take 130 seconds; until then, silence is normal."""
SinkState = Literal["untried", "connected", "unavailable", "stopped"]
"""Connected: it has a connection, or has delivered something; until either, it is untried.
Stopped: its receiver wants no more, until an operator resumes it."""
BUCKETS = (0.1, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0, 300.0, 3600.0)


@dataclass(slots=True)
class Histogram:
    """Counts below each of `BUCKETS`, as Prometheus expects."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(BUCKETS, value)] += 1
        self.total += value


@dataclass(slots=True)
class SourceStatus:
    """The metadata service as the poller sees it.

    `answered` is set with the first usable answer to this process. `last_good` is Azure's time of
    the last one; `good_at` and `last_poll` are monotonic, so that ages do not depend on a clock
    that somebody can set.
    """

    endpoint: str | None = None
    origin: str | None = None
    polls: int = 0
    problems: dict[str, int] = field(default_factory=dict)
    transitions: dict[str, int] = field(default_factory=dict)
    last_good: datetime | None = None
    good_at: float | None = None
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    last_poll: float | None = None
    problem: str | None = None
    detail: str | None = None
    http_status: int | None = None
    degraded: bool = False
    clock_skew: float | None = None
    skewed: bool = False
    notice: Histogram = field(default_factory=Histogram)

    def good_age(self, now: float) -> float | None:
        """Seconds since the last usable answer; *now* is monotonic."""
        return None if self.good_at is None else max(0.0, now - self.good_at)


@dataclass(slots=True)
class SinkStatus:
    """One sink as its dispatcher sees it."""

    type: str
    required: bool
    state: SinkState = "untried"
    since: float = 0.0
    error: str | None = None
    delivered: int = 0
    attempts_failed: int = 0
    rejected: int = 0
    filtered: int = 0
    latency: Histogram = field(default_factory=Histogram)

    def resume(self, now: float) -> bool:
        """Let a stopped sink start again, once it notices; True when it was stopped."""
        if self.state != "stopped":
            return False
        self.state, self.error, self.since = "untried", None, now
        return True


@dataclass(slots=True)
class ListenerStatus:
    """One approval source as its listener sees it."""

    type: str
    state: Literal["starting", "connected", "unavailable"] = "starting"
    error: str | None = None
    received: int = 0
    heard: float | None = None
    lag: int | None = None


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """What one reload did; `changed` names keys of the file, `at` is Unix time.

    Reopening: the file is valid, but the listeners are about to be closed and opened again.
    """

    outcome: Literal["applied", "reopening", "rejected"]
    at: float
    actor: str
    via: str
    changed: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(slots=True)
class Status:
    """The whole status; only tasks of the event loop write it.

    `started` and `configured`, when the configuration took effect, are monotonic.
    """

    started: float = 0.0
    source: SourceStatus = field(default_factory=SourceStatus)
    sinks: dict[str, SinkStatus] = field(default_factory=dict)
    listeners: dict[str, ListenerStatus] = field(default_factory=dict)
    approvals: dict[tuple[str, str], int] = field(default_factory=dict)
    refusals: UnpublishedRefusals = field(default_factory=UnpublishedRefusals)
    journal_losses: int = 0
    configured: float | None = None
    reloads_failed: int = 0
    reload: ReloadResult | None = None

    def count_approval(self, outcome: str, reason: str = "") -> None:
        self.approvals[outcome, reason] = self.approvals.get((outcome, reason), 0) + 1


def stuck(status: Status, poll_interval: float, now: float) -> str | None:
    """Why the process should be restarted, or None; *now* is monotonic."""
    silence = now - (status.source.last_poll or status.started)
    if silence <= STUCK + poll_interval:
        return None
    return f"the poll loop has not moved for {silence:.0f} s"
