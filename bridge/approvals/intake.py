"""From a message to the journal: reads, assesses and records it before it is acknowledged."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from bridge.approvals.assessment import Assessment, Assessor
from bridge.approvals.outcomes import EARLY, Cause, Outcome, refused_unverified
from bridge.approvals.publisher import Publisher
from bridge.approvals.verification import OpenedMessage, Verifier, place_in_log
from bridge.common.errors import Unavailable
from bridge.core.cloudevent import CloudEvent
from bridge.core.state import Tracked
from bridge.journal import Journal
from bridge.journal.drills import open_to_votes
from bridge.journal.grants import EventLife, grant_of
from bridge.journal.votes import (
    Receipt,
    early_one,
    end_wait,
    receive,
    seen,
    together,
    waiting,
)
from bridge.plugins import Delivery
from bridge.policy.allow import named
from bridge.policy.message import MalformedApproval, NotForUs, claimed, fingerprint
from bridge.policy.votes import HTTP, SINK, Given, LocalOutcome
from bridge.runtime.runtime import Runtime

_NEARLY_FULL = 0.8
_LONGEST_PAUSE = 1.0


class Unauthorized(Exception):
    """A local message that does not prove a known sender; the message says why."""


@dataclass(slots=True)
class Intake:
    """Takes approvals one at a time, in the order of arrival.

    A local caller waits up to *patience* seconds for Azure's answer. `voting` is locked while a
    vote is assessed and recorded.
    """

    runtime: Runtime
    publisher: Publisher
    patience: float = 2.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    assessor: Assessor = field(init=False)
    voting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _verifier: Verifier = field(default_factory=Verifier)
    _looked: dict[int, Tracked | None] = field(default_factory=dict)
    """The event, as it was when a waiting approval was last assessed."""

    def __post_init__(self) -> None:
        self.assessor = Assessor(self.runtime, self.publisher)

    async def take(self, delivery: Delivery, via: str, *, must_sign: bool = False) -> None:
        """Record a message; after this returns, it may be acknowledged.

        Raises `Unavailable` while the journal cannot be written: it must be delivered again.
        """
        journal = self._writable()
        async with self.voting:
            now = self.runtime.clock.now()
            await self._settle(now)
            receipt = await self._receipt(delivery, via, now, must_sign=must_sign)
            full = await self._record(receipt)
        journal.announce()
        await self._slow_down(full)

    async def take_local(
        self, delivery: Delivery, via: str, identity: str | None
    ) -> list[LocalOutcome]:
        """Record a vote sent directly to this bridge, and return the outcome for each event.

        *identity* is the caller; None if only a signature can prove it. Raises
        `MalformedApproval`, `Unauthorized`, and `Unavailable` while the journal cannot be written.
        """
        journal = self._writable()
        if identity is not None and via == HTTP:
            identity = named(self.runtime.rules.allow, identity)
        delivery = replace(delivery, identity=identity or delivery.identity)
        async with self.voting:
            now = self.runtime.clock.now()
            await self._settle(now)
            message = self._opened_locally(delivery)
            if message.refusal is not None:
                self.publisher.turn_away(refused_unverified(message.said[0], via, message.refusal))
                raise Unauthorized(message.refusal.detail)
            assessed = await self._assess(message, delivery, via, now, local=True)
            full = await self._record(together([one.receipt for one in assessed]))
        journal.announce()
        await self._slow_down(full)
        return [one.outcome for one in assessed] if via == SINK else await self._heard(assessed)

    async def settle(self) -> datetime | None:
        """Assess waiting approvals again; return when the wait of the next one ends."""
        async with self.voting:
            return await self._settle(self.runtime.clock.now())

    async def _record(self, receipt: Receipt) -> float:
        """Write the receipt; return how full the journal's share for votes is."""
        most = self.runtime.config.journal.max_size
        done = await self.runtime.journal.durably(
            lambda store: receive(store, receipt, self.runtime.clock.timestamp(), most)
        )
        self.publisher.left_out(done.unpublished)
        return done.full

    async def _slow_down(self, full: float) -> None:
        """Read more slowly when votes have taken most of their share: no verified one is refused.

        Nobody else waits for this, except for the next message of the same source or caller.
        """
        if full > _NEARLY_FULL:
            await self.sleep(min(_LONGEST_PAUSE, (full - _NEARLY_FULL) / (1 - _NEARLY_FULL)))

    def _writable(self) -> Journal:
        journal = self.runtime.journal
        if journal.trouble:
            raise Unavailable(journal.trouble)
        return journal

    async def _settle(self, now: datetime) -> datetime | None:
        """Turn early approvals into votes if their event or state appeared, or time is up."""
        journal = self.runtime.journal
        early = await journal.run(waiting)
        if not early:
            return None
        state, still = await journal.run(open_to_votes), dict[int, datetime]()
        for number, event, at in early:
            until = at + timedelta(seconds=self.runtime.config.approvals.early_grace)
            known = state.tracked.get(event)
            if now < until and (known is None or self._looked.get(number) == known):
                still[number] = until
                continue
            given = await journal.run(partial(early_one, number=number))
            assessed = await self.assessor.assess(given, state, now, waited=now >= until)
            if assessed.receipt.early:
                still[number], self._looked[number] = until, known
                continue
            stray = None if assessed.event or known else given
            most = self.runtime.config.journal.max_size
            settled = (number, assessed.receipt, self.runtime.clock.timestamp(), stray, most)
            done = await journal.durably(lambda store, settled=settled: end_wait(store, *settled))  # type: ignore[misc]  # mypy cannot infer a lambda's default
            self.publisher.left_out(done.unpublished)
            journal.announce()
        self._looked = {number: self._looked.get(number) for number in still}
        return min(still.values(), default=None)

    async def _receipt(
        self, delivery: Delivery, via: str, now: datetime, *, must_sign: bool
    ) -> Receipt:
        receipt = await self._content(delivery, via, now, must_sign=must_sign)
        if delivery.checkpoint is not None:
            receipt = replace(receipt, checkpoint=(via, *delivery.checkpoint))
        return receipt

    async def _content(
        self, delivery: Delivery, via: str, now: datetime, *, must_sign: bool
    ) -> Receipt:
        if delivery.unread is not None:
            self.publisher.count("dropped", delivery.unread)
            return Receipt()
        try:
            message = self._opened(delivery, must_sign=must_sign)
        except NotForUs:
            self.publisher.count("dropped", "not-an-approval")
            return Receipt()
        except MalformedApproval as error:
            return Receipt(events=self._malformed(delivery, via, str(error), now))
        assessed = await self._assess(message, delivery, via, now)
        return together([one.receipt for one in assessed])

    def _opened_locally(self, delivery: Delivery) -> OpenedMessage:
        """A caller gets an answer, but what it sent is counted like a message from a bus."""
        named = replace(delivery, position=uuid.uuid4().hex)
        try:
            return self._opened(named, must_sign=delivery.identity is None)
        except NotForUs:
            self.publisher.count("dropped", "not-an-approval")
            raise
        except MalformedApproval:
            self.publisher.count("refused", "malformed")
            raise

    def _opened(self, delivery: Delivery, *, must_sign: bool) -> OpenedMessage:
        return self._verifier.open(self.runtime.rules.allow, delivery, must_sign=must_sign)

    def _malformed(self, delivery: Delivery, via: str, why: str, now: datetime) -> list[CloudEvent]:
        unnamed = delivery.position or fingerprint(delivery.body)
        shown = claimed(delivery.body, delivery.headers) or unnamed
        key = place_in_log(delivery) or unnamed
        cause = Cause(shown, key, None, delivery.identity, via, position=delivery.position)
        told = Outcome("refused", None, cause, reason="malformed", detail=why)
        return self.publisher.stray(told, now)

    async def _assess(
        self,
        message: OpenedMessage,
        delivery: Delivery,
        via: str,
        now: datetime,
        *,
        local: bool = False,
    ) -> list[Assessment]:
        journal, proof = self.runtime.journal, message.proof
        state, found = await journal.run(open_to_votes), list[Assessment]()
        for approval in message.said:
            self.assessor.before = together([one.receipt for one in found])
            given = Given(
                approval,
                via,
                now,
                proof.identity,
                delivery.position,
                proof.signed_at,
                local,
                delivery.log,
                _past(delivery.recorded, max(now, now - self.assessor.ahead)),
                self.runtime.rules.dry_run,
            )
            key = (given.seen_as, approval.event_key)
            if not await journal.run(lambda store, key=key: seen(store, *key)):  # type: ignore[misc]  # mypy cannot infer a lambda's default
                assessed = await self.assessor.assess(given, state, now, refusal=message.refusal)
                found.append(_remembering(assessed, key, local=local))
                continue
            self.publisher.count("dropped", "duplicate")
            if local:
                found.append(await self.assessor.again(given, state, now))
        return found

    async def _heard(self, assessed: Sequence[Assessment]) -> list[LocalOutcome]:
        """The caller's answer; it includes Azure's answer if this vote satisfied the policy."""
        outcomes = [one.outcome for one in assessed]
        due = [one.event for one in assessed if _is_due(one.outcome) and one.event]
        if not due:
            return outcomes
        told = await self._granted(due)
        return [
            replace(one.outcome, outcome="granted")
            if _is_due(one.outcome) and one.event in told
            else one.outcome
            for one in assessed
        ]

    async def _granted(self, due: Sequence[EventLife]) -> set[EventLife]:
        """Which of these Azure has accepted, once it has accepted all or patience ends."""
        journal, told = self.runtime.journal, set[EventLife]()
        with journal.news() as news, suppress(TimeoutError):
            async with asyncio.timeout(self.patience):
                while len(told) < len(set(due)):
                    news.clear()
                    states = await journal.run(lambda s: {one: grant_of(s, one) for one in due})
                    told = {one for one, state in states.items() if state == "granted"}
                    if len(told) < len(states):
                        await news.wait()
        return told


def _past(recorded: datetime | None, now: datetime) -> datetime | None:
    """A record time, unless it is later than the arrival: then it proves nothing.

    On some brokers the producer sets it, and may set it wrong.
    """
    return recorded if recorded is not None and recorded <= now else None


def _is_due(outcome: LocalOutcome) -> bool:
    return outcome.outcome == "pending" and outcome.reason != EARLY


def _remembering(assessed: Assessment, key: tuple[str, str], *, local: bool) -> Assessment:
    """Remember the message's key, unless a refused sender may try again."""
    refused = assessed.outcome.outcome == "refused"
    if refused and (local or assessed.outcome.reason in {"unauthorized", "rate-limited"}):
        return assessed
    return replace(assessed, receipt=replace(assessed.receipt, keys=[key]))
