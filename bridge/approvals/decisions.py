"""From votes to Azure: judges what is pending, and has it POSTed when it is our turn."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from bridge.approvals.automation import Automation
from bridge.approvals.intake import Intake
from bridge.approvals.outcomes import refused
from bridge.approvals.publisher import Publisher
from bridge.approvals.start_requests import StartRequests
from bridge.core.cloudevent import CloudEvent
from bridge.core.model import STARTED
from bridge.core.state import State, Tracked
from bridge.journal.drills import open_to_votes
from bridge.journal.grants import EventLife, GrantState, undecided, withdraw
from bridge.journal.store import Store
from bridge.journal.votes import forget, lapse, votes
from bridge.policy.judge import AFTER_DRY_RUN, ends_with_dry_run, judge
from bridge.policy.votes import AUTO, Refusal, Vote, lapses
from bridge.runtime.runtime import Runtime

KEPT = timedelta(days=7)
"""How long the data of an event is kept after its end."""
_SAFETY_NET = 30.0
_TIDY = 3600.0
_WORSE = "since this vote, the event gained a VM, became more severe or moved to an earlier time"


@dataclass(slots=True)
class Decisions:
    """Decides on the votes of all pending events. `run` never returns."""

    runtime: Runtime
    publisher: Publisher
    intake: Intake
    automation: Automation
    start_requests: StartRequests
    _wake_at: float = 0.0
    _tidy_at: float = 0.0

    async def run(self) -> None:
        """Decide again after every change, and when a turn, a hold or a wait ends."""
        with self.runtime.journal.news() as news:
            while True:
                news.clear()
                await self.consider()
                with suppress(TimeoutError):
                    async with asyncio.timeout(
                        max(0.01, self._wake_at - self.runtime.clock.monotonic())
                    ):
                        await news.wait()

    async def consider(self) -> None:
        """Decide once on everything that is pending."""
        self._wake_at = self.runtime.clock.monotonic() + _SAFETY_NET
        journal = self.runtime.journal
        if journal.trouble:
            return
        if (until := await self.intake.settle()) is not None:
            self._again_at(until)
        if self.automation.needed:
            upcoming = await self.automation.look(await journal.run(open_to_votes))
            self._again_at(upcoming)
        if found := await journal.run(undecided):
            # Announced by Azure, so not a drill; the last look reads it again.
            state = await journal.run(lambda store: store.cached(Store.load))
            looked = [await self._look(event, told, state) for event, told in found]
            self._again_in(await self.start_requests.tell([one for one in looked if one]))
        if self.runtime.clock.monotonic() >= self._tidy_at:
            self._tidy_at = self.runtime.clock.monotonic() + _TIDY
            await journal.durably(lambda store: forget(store, self.runtime.clock.now() - KEPT))

    def _again_at(self, moment: datetime | None) -> None:
        if moment is not None:
            self._again_in((moment - self.runtime.clock.now()).total_seconds())

    def _again_in(self, seconds: float | None) -> None:
        if seconds is not None:
            self._wake_at = min(self._wake_at, self.runtime.clock.monotonic() + seconds)

    async def _look(
        self, event: EventLife, told: GrantState | None, state: State
    ) -> EventLife | None:
        """Decide whether to notify Azure now about one event that has votes."""
        known = state.tracked.get(event[0])
        cast = await self.runtime.journal.run(lambda store: votes(store, *event))
        if known is None or known.life != event[1] or known.event.status == STARTED:
            if told is not None:
                await self.start_requests.missed(event, cast, known)
            return None
        if known.missing_since is not None:
            return None
        standing = await self._lapse(known, cast)
        judgment = judge(known.event, standing, self.runtime.rules, self.runtime.clock.now())
        self._again_at(judgment.until)
        turn = self.start_requests.our_turn(known, judgment)
        if turn is not None:
            return event if self._has_come(turn, event) else None
        if told is not None:
            await self.runtime.journal.durably(lambda store: withdraw(store, event))
        return None

    async def _lapse(self, known: Tracked, cast: Sequence[Vote]) -> list[Vote]:
        """Drop approvals that no longer count; the leading bridge publishes that.

        No vote is recorded meanwhile: a hold that replaces such an approval must not go with it.
        """
        if not self._lapsed(known, cast):
            return list(cast)
        event, journal = (known.event.key, known.life), self.runtime.journal
        async with self.intake.voting:
            cast = await journal.run(lambda store: votes(store, *event))
            gone = self._lapsed(known, cast)
            said = [one for vote, why in gone for one in self._superseded(vote, why, known)]
            dropped, now = [vote for vote, _ in gone], self.runtime.clock.timestamp()
            await journal.durably(lambda store: lapse(store, dropped, said, now))
        journal.announce()
        over = {vote.voter for vote in dropped}
        return [vote for vote in cast if vote.voter not in over]

    def _lapsed(self, known: Tracked, cast: Sequence[Vote]) -> list[tuple[Vote, str]]:
        """The approvals that no longer count, each with the reason."""
        has_lapsed, rules = lapses(known.event), self.runtime.rules
        return [
            (vote, _WORSE if has_lapsed(vote) else AFTER_DRY_RUN)
            for vote in cast
            if has_lapsed(vote) or ends_with_dry_run(vote, rules)
        ]

    def _superseded(self, vote: Vote, why: str, known: Tracked) -> list[CloudEvent]:
        if vote.via == AUTO:
            return []
        told = refused(vote, Refusal("superseded", why), known, self.runtime.rules.require)
        now = self.runtime.clock.now()
        return self.publisher.answer(told, known, now, local=vote.local, counted=True)

    def _has_come(self, turn: datetime, event: EventLife) -> bool:
        """Whether we act now; not before the wait after the last failure is over."""
        if self.runtime.clock.now() < turn:
            self._again_at(turn)
            return False
        if wait := self.start_requests.wait(event):
            self._again_in(wait)
            return False
        return True
