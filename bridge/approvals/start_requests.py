"""Notifies Azure: one POST for all that is due, repeated until accepted, and its result."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from bridge.approvals.outcomes import Outcome, cause_of
from bridge.approvals.publisher import Publisher
from bridge.common.supervise import backoff
from bridge.core.model import STARTED, ScheduledEvent
from bridge.core.state import State, Tracked
from bridge.journal.grants import EventLife, GrantState, mark
from bridge.metadata.answers import OUTDATED, Accepted, SourceProblem
from bridge.policy.judge import Judgment
from bridge.policy.votes import Vote
from bridge.runtime.runtime import Runtime

log = logging.getLogger(__name__)

MOST_AT_ONCE = 100
_LONGEST_BACKOFF = 5.0


@dataclass(frozen=True, slots=True)
class Due:
    """A scheduled event about which we must notify Azure now; never a drill."""

    known: Tracked
    judgment: Judgment

    def __post_init__(self) -> None:
        if self.known.drill:
            raise ValueError("Azure is never notified of a drill")

    @property
    def event(self) -> EventLife:
        return self.known.event.key, self.known.life


class Azure(Protocol):
    """The way to the metadata service."""

    async def approve(
        self, event_ids: Sequence[str], incarnation: int | str | None, /
    ) -> Accepted | SourceProblem:
        """Tell Azure that these events may start, if its document has not changed."""

    def read_again(self) -> None:
        """Have the document read again soon."""


@dataclass(slots=True)
class StartRequests:
    """Sends StartRequests, and remembers earlier attempts."""

    runtime: Runtime
    publisher: Publisher
    azure: Azure
    _tries: dict[EventLife, tuple[int, float]] = field(default_factory=dict)

    def wait(self, event: EventLife) -> float:
        """Seconds until the next attempt after a failure; other changes do not shorten it."""
        _, retry_at = self._tries.get(event, (0, 0.0))
        return max(0.0, retry_at - self.runtime.clock.monotonic())

    async def tell(self, due: Sequence[Due], state: State) -> float | None:
        """POST what is due, in one request if possible; return seconds until the next attempt."""
        waits = [
            await self._tell(due[start : start + MOST_AT_ONCE], state)
            for start in range(0, len(due), MOST_AT_ONCE)
        ]
        return min((wait for wait in waits if wait is not None), default=None)

    async def _tell(self, due: Sequence[Due], state: State) -> float | None:
        await self._mark_due(due)
        answer = await self.azure.approve(
            [one.known.event.event_id for one in due], state.incarnation
        )
        if isinstance(answer, Accepted):
            for one in due:
                await self._granted(one)
            return None
        if answer is OUTDATED:
            return None
        if _refused(answer):
            self.azure.read_again()
            if len(due) > 1:
                # One event that is gone may have made the whole request fail.
                waits = [await self._tell([one], state) for one in due]
                return min((wait for wait in waits if wait is not None), default=None)
        return min(self._failed(one.event, answer) for one in due)

    async def _mark_due(self, due: Sequence[Due]) -> None:
        """Record each attempt before it is sent: what cannot be recorded is not sent."""
        for one in due:
            await self.runtime.journal.durably(
                lambda store, one=one: mark(
                    store, one.event, "due", (), self.runtime.clock.timestamp()
                )  # type: ignore[misc]  # mypy cannot infer a lambda's default
            )

    def _failed(self, event: EventLife, answer: SourceProblem) -> float:
        failures = self._tries.get(event, (0, 0.0))[0] + 1
        wait = answer.retry_after or backoff(failures, most=_LONGEST_BACKOFF)
        self._tries[event] = (failures, self.runtime.clock.monotonic() + wait)
        if failures == 1:
            log.warning(
                "start_request.failed", extra={"event_id": event[0], "detail": answer.detail}
            )
        return wait

    async def _granted(self, due: Due) -> None:
        now = self.runtime.clock.now()
        told = Outcome(
            "granted",
            due.known.event.key,
            cause_of(due.judgment.causes[-1]),
            due.known,
            due.judgment,
            str(self.runtime.rules.require),
            posted_at=now,
        )
        await self._end(due.event, "granted", told, now)

    async def missed(self, event: EventLife, cast: Sequence[Vote], known: Tracked | None) -> None:
        """Close a request that was due. If the event started early, someone else approved it."""
        now = self.runtime.clock.now()
        last = max(cast, key=lambda vote: vote.at)
        started = known if known is not None and known.life == event[1] else None
        due = started.event.not_before if started else None
        skew = timedelta(seconds=self.runtime.status.source.clock_skew or 0.0)
        if due is not None and now - skew < due:
            log.info("approval.released_elsewhere", extra={"event_id": event[0]})
            await self._end(event, "settled", None, now)
            return
        why = "it started" if started else "it was gone"
        told = Outcome(
            "failed",
            event[0],
            cause_of(last),
            started or _as_voted(event, last),
            policy=str(self.runtime.rules.require),
            reason="expired",
            detail=f"Azure had not confirmed the StartRequest when {why}.",
        )
        await self._end(event, "failed", told, now)

    async def _end(
        self, event: EventLife, state: GrantState, told: Outcome | None, now: datetime
    ) -> None:
        """Record the result, with the CloudEvent about it."""
        self._tries.pop(event, None)
        said = [] if told is None else [self.publisher.publish(told, now)]
        await self.runtime.journal.durably(
            lambda store: mark(store, event, state, said, self.runtime.clock.timestamp())
        )
        self.runtime.journal.announce()


def _refused(answer: SourceProblem) -> bool:
    """Whether Azure rejected the request, rather than failed to answer."""
    return answer.status is not None and 400 <= answer.status < 500 and answer.status != 429


def _as_voted(event: EventLife, vote: Vote) -> Tracked:
    """The event as the last vote saw it: it may be gone by now."""
    about = vote.about
    seen = ScheduledEvent(event[0], about.event_type, STARTED, about.resources, about.not_before)
    return Tracked(seen, life=event[1], announced=True)
