"""From a delivery to the journal: read it, weigh it, record it, and only then let it go."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from bridge import inbound
from bridge.cloudevent import CloudEvent
from bridge.errors import Unavailable
from bridge.journal.ballots import (
    Receipt,
    early,
    end_wait,
    grant_of,
    receive,
    seen,
    votes,
)
from bridge.outcomes import Outcome, Voice, voice_given, voice_of
from bridge.plugins import Delivery
from bridge.policy import Refusal, as_vote, judge, objection, older, unchanged
from bridge.runtime import Runtime
from bridge.speaker import Speaker
from bridge.state import State, Tracked
from bridge.votes import Approval, Given, Vote

MOST_WAITING = 1000
"""How many early approvals may wait; more than that is no accident."""
_NO_VETO = "A hold does not stop Azure: the event goes ahead at notBefore."
_TOLD_ALREADY = Refusal("not-approvable", "Azure was told before; it cannot be called back")
_CROWD = Refusal("rate-limited", f"{MOST_WAITING} approvals wait for their events already")


@dataclass(slots=True)
class Intake:
    """The desk at which approvals are taken, one at a time, in the order of arrival."""

    runtime: Runtime
    speaker: Speaker
    _desk: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def take(self, delivery: Delivery, via: str) -> None:
        """Record what a delivery says; when this has returned it may be acknowledged.

        Raises `Unavailable` while the journal cannot be written: then it must come again.
        """
        journal = self.runtime.journal
        if journal.trouble:
            raise Unavailable(journal.trouble)
        async with self._desk:
            now = datetime.now(UTC)
            await self._settle(now)
            receipt = await self._receipt(delivery, via, now)
            await journal.durably(lambda store: receive(store, receipt, time.time()))
        journal.announce()

    async def settle(self) -> datetime | None:
        """Look at the early ones; until when the next of them may wait."""
        async with self._desk:
            return await self._settle(datetime.now(UTC))

    async def _settle(self, now: datetime) -> datetime | None:
        """An early approval becomes a vote when its event shows, and a stray when it does not."""
        journal = self.runtime.journal
        waiting = await journal.run(early)
        if not waiting:
            return None
        state, still = await journal.load(), []
        for number, given in waiting:
            until = given.at + timedelta(seconds=self.runtime.config.approvals.early_grace)
            if given.approval.event_key not in state.tracked and now < until:
                still.append(until)
                continue
            receipt = await self._weigh(given, state, now, waited=True)
            await journal.durably(
                lambda store, number=number, receipt=receipt: end_wait(  # type: ignore[misc]
                    store, number, receipt, time.time()
                )
            )
            journal.announce()
        return min(still, default=None)

    async def _receipt(self, delivery: Delivery, via: str, now: datetime) -> Receipt:
        receipt = await self._content(delivery, via, now)
        if delivery.checkpoint is not None:
            receipt = replace(receipt, checkpoint=(via, *delivery.checkpoint))
        return receipt

    async def _content(self, delivery: Delivery, via: str, now: datetime) -> Receipt:
        if delivery.unread is not None:
            self.speaker.count("dropped", delivery.unread)
            return Receipt()
        try:
            said = inbound.read(delivery.body, delivery.headers, delivery.position)
        except inbound.NotForUs:
            self.speaker.count("dropped", "not-an-approval")
            return Receipt()
        except inbound.Malformed as error:
            return Receipt(events=self._malformed(delivery, via, str(error), now))
        return await self._read(said, delivery, via, now)

    def _malformed(self, delivery: Delivery, via: str, why: str, now: datetime) -> list[CloudEvent]:
        key = delivery.position or inbound.fingerprint(delivery.body)
        voice = Voice(key, key, None, delivery.identity, via, position=delivery.position)
        told = Outcome("refused", None, voice, reason="malformed", detail=why)
        return self.speaker.stray(told, now)

    async def _read(
        self, said: Sequence[Approval], delivery: Delivery, via: str, now: datetime
    ) -> Receipt:
        state = await self.runtime.journal.load()
        whole = Receipt()
        for approval in said:
            key = (approval.key, approval.event_key)
            if await self.runtime.journal.run(lambda store, key=key: seen(store, *key)):  # type: ignore[misc]
                self.speaker.count("dropped", "duplicate")
                continue
            given = Given(approval, via, now, delivery.identity, delivery.position)
            part = await self._weigh(given, state, now)
            whole = Receipt(
                votes=(*whole.votes, *part.votes),
                early=(*whole.early, *part.early),
                keys=(*whole.keys, key),
                events=(*whole.events, *part.events),
            )
        return whole

    async def _weigh(
        self, given: Given, state: State, now: datetime, *, waited: bool = False
    ) -> Receipt:
        """Make a vote of an approval, or a refusal, or let it wait for its event."""
        known = state.tracked.get(given.approval.event_key)
        if known is None:
            return await self._unknown(given, state, now, waited=waited)
        if not self.speaker.concerns(known):
            self.speaker.count("dropped", "not-ours")
            return Receipt()
        refusal = objection(given.approval, known.event, self.speaker.rules, given.identity)
        if refusal is not None:
            return self._refused(refusal, as_vote(given, known.event, known.life, now), known, now)
        return await self._cast(as_vote(given, known.event, known.life, now), known, now)

    async def _unknown(self, given: Given, state: State, now: datetime, *, waited: bool) -> Receipt:
        """Over, too early, or nothing that anybody here has ever seen."""
        if given.approval.event_key in state.ended:
            why = Refusal("expired", "the scheduled event is over")
        elif waited:
            why = Refusal("unknown-event", "no such scheduled event was seen here")
        elif len(await self.runtime.journal.run(early)) >= MOST_WAITING:
            why = _CROWD
        else:
            return Receipt(early=[given])
        told = Outcome(
            "refused",
            given.approval.event_key,
            voice_given(given),
            reason=why.reason,
            detail=why.detail,
        )
        return Receipt(events=self.speaker.stray(told, now))

    async def _cast(self, vote: Vote, known: Tracked, now: datetime) -> Receipt:
        """A vote counts unless it says nothing new, or comes too late to change anything."""
        rules, event = self.speaker.rules, (vote.event_key, vote.life)
        cast, told = await self.runtime.journal.run(
            lambda store: (votes(store, *event), grant_of(store, event))
        )
        standing = next((one for one in cast if one.voice == vote.voice), None)
        if standing is not None and older(vote, standing):
            self.speaker.count("dropped", "older")
            return Receipt()
        if standing is not None and unchanged(vote, standing, known.event, rules):
            self.speaker.count("dropped", "unchanged")
            return Receipt()
        if told == "granted" and vote.decision == "hold":
            return self._refused(_TOLD_ALREADY, vote, known, now)
        others = [one for one in cast if one.voice != vote.voice]
        return Receipt(votes=[vote], events=self._recorded(vote, others, known, now))

    def _refused(self, why: Refusal, vote: Vote, known: Tracked, now: datetime) -> Receipt:
        told = Outcome(
            "refused",
            vote.event_key,
            voice_of(vote),
            known,
            policy=self.speaker.rules.require,
            reason=why.reason,
            detail=why.detail,
        )
        return Receipt(events=self.speaker.answer(told, known, now))

    def _recorded(
        self, vote: Vote, others: Sequence[Vote], known: Tracked, now: datetime
    ) -> list[CloudEvent]:
        """`approval.recorded`, unless this vote is the one that satisfies the policy."""
        rules = self.speaker.rules
        judgement = judge(known.event, [*others, vote], rules, now)
        if judgement.satisfied and not rules.dry_run:
            return []
        told = Outcome(
            "recorded",
            vote.event_key,
            voice_of(vote),
            known,
            judgement,
            rules.require,
            detail=_NO_VETO if vote.decision == "hold" else None,
            dry_run=rules.dry_run,
            would_grant=judgement.satisfied,
        )
        return self.speaker.answer(told, known, now)
