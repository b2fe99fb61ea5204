"""From a message to the journal: reads, assesses and records it before it is acknowledged."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bridge.approvals.assessment import Assessment, Assessor
from bridge.approvals.outcomes import EARLY, Cause, Outcome, refused_unverified
from bridge.approvals.publisher import Publisher, in_journal
from bridge.approvals.verification import Arrival, OpenedMessage, Verifier, place_in_log
from bridge.common.errors import Unavailable
from bridge.core.cloudevent import CloudEvent
from bridge.core.state import State, Tracked
from bridge.journal import Journal
from bridge.journal.drills import open_to_votes
from bridge.journal.grants import EventLife, grant_of
from bridge.journal.store import Store
from bridge.journal.votes import Receipt, early_one, end_wait, receive, seen, waiting
from bridge.plugins import Delivery
from bridge.policy.allow import named
from bridge.policy.message import MalformedApproval, NotForUs, claimed, fingerprint
from bridge.policy.votes import HTTP, SINK, LocalOutcome
from bridge.runtime.runtime import Runtime
from bridge.telemetry.votes import traced_votes

MOST_AT_ONCE = 256
"""After how many approvals a transaction ends."""
_NEARLY_FULL = 0.8
_LONGEST_PAUSE = 1.0


class Unauthorized(Exception):
    """A local message that does not prove a known sender; the message says why."""


@dataclass(slots=True)
class Intake:
    """Takes approvals in the order of arrival, those that arrive together in one transaction.

    A local caller waits up to *patience* seconds for Azure's answer. `voting` is locked while
    votes are assessed and recorded, which is done in the journal's thread: each one is assessed
    against everything that was recorded before it, in the same transaction too.
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
        await self.take_some([delivery], via, must_sign=must_sign)

    async def take_some(
        self, deliveries: Sequence[Delivery], via: str, *, must_sign: bool = False
    ) -> int:
        """Record messages like `take`; return how many, from the first one on and at least one.

        If it raises, none of them is recorded.
        """
        journal = self._writable()
        async with traced_votes(self.runtime.tracing, deliveries, via), self.voting:
            taken, full = await in_journal(
                journal, lambda store: self._record_all(store, deliveries, via, must_sign=must_sign)
            )
        journal.announce()
        await self._slow_down(full)
        return taken

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
        async with traced_votes(self.runtime.tracing, [delivery], via), self.voting:
            message = self._opened_locally(delivery)
            if message.refusal is not None:
                self.publisher.turn_away(refused_unverified(message.said[0], via, message.refusal))
                raise Unauthorized(message.refusal.detail)
            assessed, full = await in_journal(
                journal, lambda store: self._record_local(store, message, delivery, via)
            )
        journal.announce()
        await self._slow_down(full)
        return [one.outcome for one in assessed] if via == SINK else await self._heard(assessed)

    async def settle(self) -> datetime | None:
        """Assess waiting approvals again; return when the wait of the next one ends."""
        journal = self.runtime.journal
        if not await journal.run(waiting):
            return None
        async with self.voting:
            until, settled = await in_journal(journal, self._settle_all)
        if settled:
            journal.announce()
        return until

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

    def _record_all(
        self, store: Store, deliveries: Sequence[Delivery], via: str, *, must_sign: bool
    ) -> tuple[int, float]:
        """Record messages in one transaction; how many, and how full the share of votes is.

        It ends early when the share is nearly full, so that the source is slowed down, and after
        many approvals, because the journal has more to do.
        """
        state, taken, done, full = open_to_votes(store), 0, 0, 0.0
        with store.transaction(keeps_state=True):
            self._settle(store, state)
            for delivery in deliveries:
                said, full = self._record(store, state, delivery, via, must_sign=must_sign)
                taken, done = taken + 1, done + said
                if full > _NEARLY_FULL or done >= MOST_AT_ONCE:
                    break
            marks = [one.checkpoint for one in deliveries[:taken] if one.checkpoint is not None]
            for name, value in dict(marks).items():
                full = self._write(store, Receipt(checkpoint=(via, name, value)))
        return taken, full

    def _record(
        self, store: Store, state: State, delivery: Delivery, via: str, *, must_sign: bool
    ) -> tuple[int, float]:
        """Record one message; how many approvals it had, and how full the share of votes is."""
        now = self.runtime.clock.now()
        try:
            message = None if delivery.unread else self._opened(delivery, must_sign=must_sign)
        except NotForUs:
            self.publisher.count("dropped", "not-an-approval")
            return 1, self._write(store, Receipt())
        except MalformedApproval as error:
            said = self._malformed(delivery, via, str(error), now)
            return 1, self._write(store, Receipt(events=said))
        if message is None:
            self.publisher.count("dropped", delivery.unread or "")
            return 1, self._write(store, Receipt())
        _, full = self._assess(store, state, message, delivery, via)
        return len(message.said), full

    def _record_local(
        self, store: Store, message: OpenedMessage, delivery: Delivery, via: str
    ) -> tuple[list[Assessment], float]:
        state = open_to_votes(store)
        with store.transaction(keeps_state=True):
            self._settle(store, state)
            return self._assess(store, state, message, delivery, via, local=True)

    def _write(self, store: Store, receipt: Receipt) -> float:
        """Write the receipt; return how full the journal's share for votes is."""
        most = self.runtime.config.journal.max_size
        done = receive(store, receipt, self.runtime.clock.timestamp(), most)
        self.publisher.left_out(done.unpublished)
        return done.full

    def _settle_all(self, store: Store) -> tuple[datetime | None, bool]:
        state = open_to_votes(store)
        with store.transaction(keeps_state=True):
            return self._settle(store, state)

    def _settle(self, store: Store, state: State) -> tuple[datetime | None, bool]:
        """Turn early approvals into votes if their event or state appeared, or time is up."""
        now, still, settled = self.runtime.clock.now(), dict[int, datetime](), False
        for number, event, at in waiting(store):
            until = at + timedelta(seconds=self.runtime.config.approvals.early_grace)
            known = state.tracked.get(event)
            if now < until and (known is None or self._looked.get(number) == known):
                still[number] = until
                continue
            given = early_one(store, number)
            assessed = self.assessor.assess(store, given, state, now, waited=now >= until)
            if assessed.receipt.early:
                still[number], self._looked[number] = until, known
                continue
            stray, settled = None if assessed.event or known else given, True
            most = self.runtime.config.journal.max_size
            at_ = self.runtime.clock.timestamp()
            done = end_wait(store, number, assessed.receipt, at_, stray, most)
            self.publisher.left_out(done.unpublished)
        self._looked = {number: self._looked.get(number) for number in still}
        return min(still.values(), default=None), settled

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

    def _assess(
        self,
        store: Store,
        state: State,
        message: OpenedMessage,
        delivery: Delivery,
        via: str,
        *,
        local: bool = False,
    ) -> tuple[list[Assessment], float]:
        """Assess and record each approval of a message."""
        now, found, full = self.runtime.clock.now(), list[Assessment](), None
        ahead, dry_run = self.assessor.ahead, self.runtime.rules.dry_run
        arrival = Arrival(via, now, max(now, now - ahead), local=local, dry_run=dry_run)
        for approval in message.said:
            given = message.given(approval, delivery, arrival)
            key = (given.seen_as, approval.event_key)
            if seen(store, *key):
                self.publisher.count("dropped", "duplicate")
                if local:
                    found.append(self.assessor.again(store, given, state, now))
                continue
            assessed = self.assessor.assess(store, given, state, now, refusal=message.refusal)
            found.append(assessed.remembering(key, local=local))
            full = self._write(store, found[-1].receipt)
        return found, self._write(store, Receipt()) if full is None else full

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


def _is_due(outcome: LocalOutcome) -> bool:
    return outcome.outcome == "pending" and outcome.reason != EARLY
