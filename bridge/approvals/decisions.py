"""From votes to Azure: judges what is pending, and has it POSTed when it is our turn."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from bridge.approvals.automation import Automation
from bridge.approvals.intake import Intake
from bridge.approvals.outcomes import refused
from bridge.approvals.publisher import Publisher
from bridge.approvals.start_requests import StartRequests
from bridge.config import Config
from bridge.core.cloudevent import CloudEvent
from bridge.core.model import STARTED
from bridge.core.state import State, Tracked
from bridge.journal.drills import open_to_votes
from bridge.journal.grants import EventLife, GrantState, undecided, withdraw
from bridge.journal.store import Store
from bridge.journal.votes import counted_votes, forget, lapse, votes
from bridge.policy.judge import AFTER_DRY_RUN, CountedVotes, ends_with_dry_run, judge
from bridge.policy.votes import AUTO, Refusal, Vote, lapses
from bridge.runtime.runtime import Runtime

KEPT = timedelta(days=7)
"""How long the data of an event is kept after its end."""
_SAFETY_NET = 30.0
_TIDY = 3600.0
_WORSE = "since this vote, the event gained a VM, became more severe or moved to an earlier time"


@dataclass(frozen=True, slots=True)
class _Found:
    """What to do about one event that has votes."""

    what: Literal["missed", "lapse", "withdraw", "due"]
    event: EventLife
    known: Tracked | None
    cast: Sequence[Vote] = ()


@dataclass(frozen=True, slots=True)
class _Idle:
    """An event whose votes are not enough, and everything that this depends on."""

    known: Tracked
    counted_votes: CountedVotes
    version: int
    config: Config
    until: datetime | None

    def still(self, runtime: Runtime, store: Store, state: State, event: EventLife) -> bool:
        """Whether nothing has changed, and no hold has expired."""
        if state.tracked.get(event[0]) is not self.known or runtime.config is not self.config:
            return False
        if self.until is not None and runtime.clock.now() >= self.until:
            return False
        now = counted_votes(store, self.known, runtime.rules_for(self.known))
        return now is self.counted_votes and now.version == self.version


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
    _idle: dict[EventLife, _Idle] = field(default_factory=dict)

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
        found = await journal.run(self._look_at_all)
        if lapsed := [one.known for one in found if one.what == "lapse" and one.known]:
            for known in lapsed:
                await self._lapse(known)
            found = await journal.run(self._look_at_all)
        await self._act(found)
        if self.runtime.clock.monotonic() >= self._tidy_at:
            self._tidy_at = self.runtime.clock.monotonic() + _TIDY
            await journal.durably(lambda store: forget(store, self.runtime.clock.now() - KEPT))

    def _again_at(self, moment: datetime | None) -> None:
        if moment is not None:
            self._again_in((moment - self.runtime.clock.now()).total_seconds())

    def _again_in(self, seconds: float | None) -> None:
        if seconds is not None:
            self._wake_at = min(self._wake_at, self.runtime.clock.monotonic() + seconds)

    def _look_at_all(self, store: Store) -> list[_Found]:
        """What to do about the events that have votes, in the journal's thread.

        Only those are judged that have changed since the last time, or whose time has come.
        """
        # Announced by Azure, so not a drill; the last look reads it again.
        state, before = store.cached(Store.load), self._idle
        self._idle = {}
        found = []
        for event, told in undecided(store):
            idle = before.get(event)
            if told is None and idle is not None and idle.still(self.runtime, store, state, event):
                self._idle[event] = idle
                self._again_at(idle.until)
                continue
            if (one := self._look(store, event, told, state)) is not None:
                found.append(one)
        return found

    def _look(
        self, store: Store, event: EventLife, told: GrantState | None, state: State
    ) -> _Found | None:
        """Decide what to do about one event that has votes; None if nothing now."""
        known = state.tracked.get(event[0])
        if known is None or known.life != event[1] or known.event.status == STARTED:
            return _Found("missed", event, known, votes(store, *event)) if told else None
        if known.missing_since is not None:
            return None
        kept = counted_votes(store, known, self.runtime.rules_for(known))
        if self._lapsed(known, kept.votes.values()):
            return _Found("lapse", event, known)
        judgment = kept.judge(self.runtime.clock.now())
        self._again_at(judgment.until)
        turn = self.start_requests.our_turn(known, judgment)
        if turn is not None:
            return _Found("due", event, known) if self._has_come(turn, event) else None
        if told is not None:
            return _Found("withdraw", event, known, list(kept.votes.values()))
        self._idle[event] = _Idle(known, kept, kept.version, self.runtime.config, judgment.until)
        return None

    async def _act(self, found: Sequence[_Found]) -> None:
        for one in found:
            if one.what == "missed":
                await self.start_requests.missed(one.event, one.cast, one.known)
        if stopped := [one for one in found if one.what == "withdraw"]:
            await self.runtime.journal.durably(lambda store: _withdraw(store, stopped))
        due = [one.event for one in found if one.what == "due"]
        self._again_in(await self.start_requests.tell(due))

    async def _lapse(self, known: Tracked) -> None:
        """Drop approvals that no longer count; the leading bridge publishes that.

        No vote is recorded meanwhile: a hold that replaces such an approval must not go with it.
        """
        event, journal = (known.event.key, known.life), self.runtime.journal
        async with self.intake.voting:
            cast = await journal.run(lambda store: votes(store, *event))
            gone = self._lapsed(known, cast)
            said = [one for vote, why in gone for one in self._superseded(vote, why, known)]
            dropped = [vote for vote, _ in gone]
            over, now = {vote.voter for vote in dropped}, self.runtime.clock.now()
            standing = [vote for vote in cast if vote.voter not in over]
            rules = self.runtime.rules_for(known)
            enough = judge(known.event, standing, rules, now).satisfied
            await journal.durably(
                lambda store: lapse(store, dropped, said, now.timestamp(), still_due=enough)
            )
        journal.announce()

    def _lapsed(self, known: Tracked, cast: Iterable[Vote]) -> list[tuple[Vote, str]]:
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


def _withdraw(store: Store, stopped: Sequence[_Found]) -> None:
    """Note that we no longer must tell Azure, unless a vote came after those that were judged.

    Such a vote may have made it our duty again. It has woken us, so the next look decides.
    """
    judged = {one.event: {vote.voter: vote for vote in one.cast} for one in stopped}
    present = {event: {vote.voter: vote for vote in votes(store, *event)} for event in judged}
    withdraw(store, [event for event in judged if present[event] == judged[event]])
