"""Notifies Azure: one POST for all that is due, repeated until accepted, and its result.

What is sent is decided at the last moment: see `StartRequests._last_look`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from bridge.approvals.outcomes import Cause, Outcome, cause_of
from bridge.approvals.publisher import Publisher
from bridge.common.supervise import backoff
from bridge.core.cloudevent import CloudEvent
from bridge.core.model import STARTED, ScheduledEvent
from bridge.core.state import State, Tracked
from bridge.journal.grants import EventLife, GrantState, ask, duties, grant_of, mark
from bridge.journal.store import Store
from bridge.journal.votes import counted_votes
from bridge.metadata.answers import OUTDATED, WITHDRAWN, Accepted, SourceProblem
from bridge.policy.judge import Judgment
from bridge.policy.votes import Vote
from bridge.runtime.runtime import Runtime
from bridge.telemetry.votes import trace_request

log = logging.getLogger(__name__)

MOST_AT_ONCE = 100
_LONGEST_BACKOFF = 5.0
_UNREAD = 1.0
"""When to try again if no document was read yet: one without news does not wake us."""
_AT_ONCE = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Asked:
    """A scheduled event that Azure is asked to start, as the last look found it; never a drill."""

    known: Tracked
    judgment: Judgment
    policy: str
    at: datetime

    def __post_init__(self) -> None:
        if self.known.drill:
            raise ValueError("Azure is never notified of a drill")

    @property
    def event(self) -> EventLife:
        return self.known.event.key, self.known.life

    @property
    def cause(self) -> Cause:
        """The last approval; a policy that is satisfied has one."""
        if self.judgment.last is None:
            raise ValueError("Azure is never notified without an approval")
        return cause_of(self.judgment.last)


class Azure(Protocol):
    """The way to the metadata service."""

    async def approve(
        self, choose: Callable[[int | str | None], Awaitable[Sequence[str]]], /
    ) -> Accepted | SourceProblem:
        """Tell Azure that events may start: those that *choose* names when the request leaves."""

    def read_again(self) -> None:
        """Have the document read again soon."""


@dataclass(slots=True)
class StartRequests:
    """Sends StartRequests, and remembers earlier attempts.

    `voting` is locked while a vote is assessed and recorded. The last look locks it too, so that
    each vote is either counted by it or knows that it came too late.
    """

    runtime: Runtime
    publisher: Publisher
    azure: Azure
    voting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tries: dict[EventLife, tuple[int, float]] = field(default_factory=dict)

    def wait(self, event: EventLife) -> float:
        """Seconds until the next attempt after a failure; other changes do not shorten it."""
        _, retry_at = self._tries.get(event, (0, 0.0))
        return max(0.0, retry_at - self.runtime.clock.monotonic())

    def our_turn(self, known: Tracked, judgment: Judgment) -> datetime | None:
        """From when on we act on a judgment; None if we never do.

        The leading bridge does not wait, even if the clock was set back.
        """
        if not judgment.satisfied or self.runtime.rules_for(known).dry_run:
            return None
        mine = self.publisher.place(known, judgment)
        if mine is None or judgment.since is None or not self.publisher.concerns(known):
            return None
        return judgment.since + mine * self.runtime.rules.takeover_after if mine else _AT_ONCE

    async def tell(self, due: Sequence[EventLife]) -> float | None:
        """POST what is due, in one request if possible; return seconds until the next attempt."""
        waits = [
            await self._tell(due[start : start + MOST_AT_ONCE], others=True)
            for start in range(0, len(due), MOST_AT_ONCE)
        ]
        return min((wait for wait in waits if wait is not None), default=None)

    async def _tell(self, due: Sequence[EventLife], *, others: bool = False) -> float | None:
        """POST these, and with *others* what becomes due while the request waits to leave."""
        await self._mark_due(due)
        asked: dict[EventLife, Asked] = {}

        async def choose(incarnation: int | str | None) -> list[str]:
            asked.update(await self._last_look(due, incarnation, others=others))
            return [one.known.event.event_id for one in asked.values()]

        began = self.runtime.tracing.clock()
        answer = await self.azure.approve(choose)
        last = {event[0]: one.judgment.last for event, one in asked.items()}
        error = None if isinstance(answer, Accepted) else answer.detail
        trace_request(self.runtime.tracing, began, last, error)
        if isinstance(answer, Accepted):
            await self._granted(list(asked.values()))
            return None
        if answer is OUTDATED:
            return _UNREAD
        if answer is WITHDRAWN:
            return None
        return await self._not_accepted(answer, list(asked), due)

    async def _not_accepted(
        self, answer: SourceProblem, asked: Sequence[EventLife], due: Sequence[EventLife]
    ) -> float | None:
        """Try again later; if the request was refused, in two halves.

        One event that is gone may have made the whole request fail. With halves, few requests find
        it, and the others go through.
        """
        if answer.status is not None:
            await self._mark(asked, "due")  # Azure has answered, so no request is on its way
        if _refused(answer):
            self.azure.read_again()
            if (half := len(asked) // 2) > 0:
                waits = [await self._tell(part) for part in (asked[:half], asked[half:])]
                return min((wait for wait in waits if wait is not None), default=None)
        return self._failed(asked or due, answer)

    async def _last_look(
        self, due: Sequence[EventLife], incarnation: int | str | None, *, others: bool
    ) -> Mapping[EventLife, Asked]:
        """Judge once more, by the journal and the rules as they are when the request can leave.

        One transaction reads, judges and marks. Whatever is committed before it decides; what
        comes later finds the mark. The rules are read in there too: a reload is audited in the
        journal, so one that was audited before the mark is in force.
        """

        def look(store: Store) -> Mapping[EventLife, Asked]:
            now, wanted = self.runtime.clock.timestamp(), [*due]
            if others:
                wanted += [one for one in duties(store) if one not in due and not self.wait(one)]
            chosen = wanted[:MOST_AT_ONCE]
            return ask(store, lambda: self._still_due(store, chosen, incarnation), now)

        async with self.voting:
            return await self.runtime.journal.durably(look)

    def _still_due(
        self, store: Store, due: Sequence[EventLife], incarnation: int | str | None
    ) -> dict[EventLife, Asked]:
        state = store.load()
        if state.incarnation != incarnation:
            return {}
        found = [self._judged(store, state, event) for event in due]
        return {one.event: one for one in found if one is not None}

    def _judged(self, store: Store, state: State, event: EventLife) -> Asked | None:
        """The event as it may be asked for now, or None."""
        known, now = state.tracked.get(event[0]), self.runtime.clock.now()
        if known is None or known.life != event[1] or known.event.status == STARTED:
            return None
        if known.missing_since is not None or grant_of(store, event) not in {None, "due", "asked"}:
            return None
        rules = self.runtime.rules_for(known)
        judgment = counted_votes(store, known, rules).judge(now)
        turn = self.our_turn(known, judgment)
        if turn is None or now < turn:
            return None
        return Asked(known, judgment, str(rules.require), now)

    async def _mark_due(self, due: Sequence[EventLife]) -> None:
        """Record each duty before it is met: what cannot be recorded is not sent."""
        states = await self.runtime.journal.run(lambda s: {one: grant_of(s, one) for one in due})
        await self._mark([one for one, state in states.items() if state is None], "due")

    async def _mark(self, events: Sequence[EventLife], state: GrantState) -> None:
        if events:
            await self.runtime.journal.durably(
                lambda store: mark(store, events, state, (), self.runtime.clock.timestamp())
            )

    def _failed(self, events: Sequence[EventLife], answer: SourceProblem) -> float:
        """Try again later, all of them together."""
        failures = {event: self._tries.get(event, (0, 0.0))[0] + 1 for event in events}
        most = max(failures.values())
        wait = answer.retry_after or backoff(most, most=_LONGEST_BACKOFF)
        retry_at = self.runtime.clock.monotonic() + wait
        self._tries |= {event: (count, retry_at) for event, count in failures.items()}
        for event in (event for event, count in failures.items() if count == 1):
            log.warning(
                "start_request.failed", extra={"event_id": event[0], "detail": answer.detail}
            )
        return wait

    async def _granted(self, asked: Sequence[Asked]) -> None:
        """Publish the judgments by which Azure was asked: what came later did not decide."""
        now = self.runtime.clock.now()
        told = [self.publisher.publish(_grant(one), now) for one in asked]
        await self._end([one.event for one in asked], "granted", told)

    async def missed(self, event: EventLife, cast: Sequence[Vote], known: Tracked | None) -> None:
        """Close a request that was due. If the event started early, someone else approved it."""
        now = self.runtime.clock.now()
        last = max(cast, key=lambda vote: vote.at)
        started = known if known is not None and known.life == event[1] else None
        due = started.event.not_before if started else None
        skew = timedelta(seconds=self.runtime.status.source.clock_skew or 0.0)
        if due is not None and now - skew < due:
            log.info("approval.released_elsewhere", extra={"event_id": event[0]})
            await self._end([event], "settled", ())
            return
        why = "the event started" if started else "the event was gone"
        told = Outcome(
            "failed",
            event[0],
            cause_of(last),
            started or _as_voted(event, last),
            policy=str(self.runtime.rules.require),
            reason="expired",
            detail=f"Azure had not confirmed the StartRequest when {why}.",
        )
        await self._end([event], "failed", [self.publisher.publish(told, now)])

    async def _end(
        self, events: Sequence[EventLife], state: GrantState, told: Sequence[CloudEvent]
    ) -> None:
        """Record the results in one transaction, with the CloudEvents about them."""
        for event in events:
            self._tries.pop(event, None)
        await self.runtime.journal.durably(
            lambda store: mark(store, events, state, told, self.runtime.clock.timestamp())
        )
        self.runtime.journal.announce()


def _grant(asked: Asked) -> Outcome:
    return Outcome(
        "granted",
        asked.known.event.key,
        asked.cause,
        asked.known,
        asked.judgment,
        asked.policy,
        posted_at=asked.at,
    )


def _refused(answer: SourceProblem) -> bool:
    """Whether Azure rejected the request, rather than failed to answer."""
    return answer.status is not None and 400 <= answer.status < 500 and answer.status != 429


def _as_voted(event: EventLife, vote: Vote) -> Tracked:
    """The event as the last vote saw it: it may be gone by now."""
    about = vote.about
    seen = ScheduledEvent(event[0], about.event_type, STARTED, about.resources, about.not_before)
    return Tracked(seen, life=event[1], announced=True)
