"""From votes to Azure: judge what is pending, POST when it is our turn, and say how it ended."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from bridge.answers import Accepted, Problem
from bridge.approvals import Intake
from bridge.journal.ballots import (
    Event,
    GrantState,
    forget,
    lapse,
    mark,
    undecided,
    votes,
    withdraw,
)
from bridge.model import STARTED, ScheduledEvent
from bridge.outcomes import Outcome, voice_of
from bridge.policy import Judgement, judge, lapsed
from bridge.runtime import Runtime
from bridge.speaker import Speaker
from bridge.state import State, Tracked
from bridge.supervise import backoff
from bridge.votes import Vote

log = logging.getLogger(__name__)

Post = Callable[[Sequence[str], int | str | None], Awaitable[Accepted | Problem]]
KEPT = timedelta(days=7)
"""How long what belongs to an event is kept after its end."""
_SAFETY_NET = 30.0
_TIDY = 3600.0
_LONGEST_BACKOFF = 5.0


@dataclass(slots=True)
class Granting:
    """Watches the votes of all pending events. `run` never returns."""

    runtime: Runtime
    speaker: Speaker
    intake: Intake
    post: Post
    _tries: dict[Event, tuple[int, float]] = field(default_factory=dict)
    _wake_at: float = 0.0
    _tidy_at: float = 0.0

    async def run(self) -> None:
        """Look again at every piece of news, and when a turn, a hold or a wait is over."""
        with self.runtime.journal.news() as news:
            while True:
                news.clear()
                await self.consider()
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(0.01, self._wake_at - time.monotonic())):
                        await news.wait()

    async def consider(self) -> None:
        """One look at everything that waits."""
        self._wake_at = time.monotonic() + _SAFETY_NET
        journal = self.runtime.journal
        if journal.trouble:
            return
        if (until := await self.intake.settle()) is not None:
            self._again_at(until)
        if found := await journal.run(undecided):
            state = await journal.load()
            for event, told in found:
                await self._look(event, told, state)
        if time.monotonic() >= self._tidy_at:
            self._tidy_at = time.monotonic() + _TIDY
            await journal.durably(lambda store: forget(store, datetime.now(UTC) - KEPT))

    def _again_at(self, moment: datetime) -> None:
        self._again_in((moment - datetime.now(UTC)).total_seconds())

    def _again_in(self, seconds: float) -> None:
        self._wake_at = min(self._wake_at, time.monotonic() + seconds)

    async def _look(self, event: Event, told: GrantState | None, state: State) -> None:
        """Decide about one event that somebody has voted on."""
        known = state.tracked.get(event[0])
        cast = await self.runtime.journal.run(lambda store: votes(store, *event))
        if known is None or known.life != event[1] or known.event.status == STARTED:
            if told == "due":
                await self._missed(event, cast, known)
            return
        if known.missing_since is not None:
            return
        standing = await self._lapse(known, cast)
        rules = self.speaker.rules
        judgement = judge(known.event, standing, rules, datetime.now(UTC))
        if judgement.until is not None:
            self._again_at(judgement.until)
        if judgement.satisfied and not rules.dry_run:
            await self._satisfied(known, judgement, state, told)
        elif told == "due":
            await self.runtime.journal.durably(lambda store: withdraw(store, event))

    async def _lapse(self, known: Tracked, cast: Sequence[Vote]) -> list[Vote]:
        """Votes on what is another event by now are over, and who leads says so."""
        gone = [vote for vote in cast if lapsed(vote, known.event)]
        if not gone:
            return list(cast)
        now, policy = datetime.now(UTC), self.speaker.rules.require
        why = "the event has more VMs, is harsher or comes earlier than when this was given"
        said = [
            one
            for vote in gone
            for one in self.speaker.answer(
                Outcome(
                    "refused",
                    vote.event_key,
                    voice_of(vote),
                    known,
                    policy=policy,
                    reason="superseded",
                    detail=why,
                ),
                known,
                now,
            )
        ]
        await self.runtime.journal.durably(lambda store: lapse(store, gone, said, time.time()))
        self.runtime.journal.announce()
        return [vote for vote in cast if vote not in gone]

    async def _satisfied(
        self, known: Tracked, judgement: Judgement, state: State, told: GrantState | None
    ) -> None:
        """POST if it is our turn, and not before the last failure is forgiven."""
        mine = self.speaker.turn(known)
        if mine is None or judgement.since is None:
            return
        due = judgement.since + mine * self.speaker.rules.takeover_after
        if datetime.now(UTC) < due:
            self._again_at(due)
            return
        event = (known.event.key, known.life)
        _, retry_at = self._tries.get(event, (0, 0.0))
        if time.monotonic() < retry_at:
            self._again_in(retry_at - time.monotonic())
            return
        if told is None:
            await self.runtime.journal.durably(
                lambda store: mark(store, event, "due", (), time.time())
            )
        await self._post(known, judgement, state)

    async def _post(self, known: Tracked, judgement: Judgement, state: State) -> None:
        event = (known.event.key, known.life)
        answer = await self.post([known.event.event_id], state.incarnation)
        if isinstance(answer, Accepted):
            await self._granted(known, judgement)
            return
        failures = self._tries.get(event, (0, 0.0))[0] + 1
        wait = answer.retry_after or backoff(failures, most=_LONGEST_BACKOFF)
        self._tries[event] = (failures, time.monotonic() + wait)
        self._again_in(wait)
        if failures == 1:
            log.warning("approval.not_taken", extra={"event_id": event[0], "detail": answer.detail})

    async def _granted(self, known: Tracked, judgement: Judgement) -> None:
        now = datetime.now(UTC)
        told = Outcome(
            "granted",
            known.event.key,
            voice_of(judgement.causes[-1]),
            known,
            judgement,
            self.speaker.rules.require,
            posted_at=now,
        )
        await self._end((known.event.key, known.life), "granted", told, now)

    async def _missed(self, event: Event, cast: Sequence[Vote], known: Tracked | None) -> None:
        """We were due. An event that started before its time was released by somebody."""
        now = datetime.now(UTC)
        last = max(cast, key=lambda vote: vote.at)
        started = known if known is not None and known.life == event[1] else None
        due = started.event.not_before if started else None
        skew = timedelta(seconds=self.runtime.status.source.clock_skew or 0.0)
        if due is not None and now - skew < due:
            log.info("approval.overtaken", extra={"event_id": event[0]})
            await self._end(event, "settled", None, now)
            return
        why = "it started" if started else "it was gone"
        told = Outcome(
            "failed",
            event[0],
            voice_of(last),
            started or _as_voted(event, last),
            policy=self.speaker.rules.require,
            reason="expired",
            detail=f"Azure had not confirmed our StartRequest when {why}.",
        )
        await self._end(event, "failed", told, now)

    async def _end(
        self, event: Event, state: GrantState, told: Outcome | None, now: datetime
    ) -> None:
        """Write down how it ended, with the CloudEvent that says so."""
        self._tries.pop(event, None)
        said = [] if told is None else [self.speaker.publish(told, now)]
        await self.runtime.journal.durably(
            lambda store: mark(store, event, state, said, time.time())
        )
        self.runtime.journal.announce()


def _as_voted(event: Event, vote: Vote) -> Tracked:
    """The event as the last vote saw it: by now it may be gone."""
    about = vote.about
    seen = ScheduledEvent(event[0], about.event_type, STARTED, about.resources, about.not_before)
    return Tracked(seen, life=event[1], announced=True)
