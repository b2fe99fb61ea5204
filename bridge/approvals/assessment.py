"""Turns an approval into a vote: decides whether it counts, waits or is refused, and why."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bridge.approvals.outcomes import (
    Outcome,
    cause_given,
    cause_of,
    refused,
    refused_to,
    remark,
    told_of,
    waits_for,
)
from bridge.approvals.publisher import Publisher
from bridge.core.cloudevent import CloudEvent
from bridge.core.state import State, Tracked
from bridge.journal.grants import EventLife, GrantState, grant_of
from bridge.journal.views import published
from bridge.journal.votes import (
    NOTHING,
    Receipt,
    born,
    early,
    is_crowded,
    is_waiting_crowded,
    votes,
)
from bridge.policy.allow import stale
from bridge.policy.judge import Judgment, as_vote, judge
from bridge.policy.seen import NEVER_CAME, Sighting, as_seen, unfit
from bridge.policy.votes import (
    Given,
    LocalOutcome,
    Refusal,
    Vote,
    in_order,
    older,
    renewed,
    unchanged,
)
from bridge.runtime.runtime import Runtime

MOST_WAITING = 1000
"""How many early approvals of unverified senders may wait; verified ones have no limit."""
MOST_UNVERIFIED = 1000
"""How many votes of unverified names one event may have; verified votes have no limit."""
_EVENT_UNKNOWN = "this bridge has not seen such a scheduled event yet; the approval waits for it"
_STATE_UNKNOWN = "this bridge does not know the state in seen yet; the approval waits"
_ELSEWHERE = Refusal("not-approvable", "the event does not name this VM")
_TOLD_ALREADY = Refusal(
    "not-approvable", "Azure has already accepted the approval, and it cannot be revoked"
)
_LATER_STANDS = Refusal("superseded", "the same approver has cast a later vote")
_REPLAYED = Refusal("replayed", "this message was already received, and its vote no longer counts")
_TAKEN = Refusal("unauthorized", "this name has a verified vote, and this sender is not verified")
_FULL = Refusal("rate-limited", "there is no space for more unverified votes on this event")
_NO_SEATS = Refusal("rate-limited", "too many approvals already wait for their events")


@dataclass(frozen=True, slots=True)
class Assessment:
    """What to record, and what to answer a caller; `event` is the state it was assessed against."""

    receipt: Receipt
    outcome: LocalOutcome
    event: EventLife | None = None


@dataclass(slots=True)
class Assessor:
    """Assesses one approval at a time against the current journal."""

    runtime: Runtime
    publisher: Publisher
    before: Receipt = field(default=NOTHING)
    """What the current message adds to the journal already."""

    async def assess(
        self,
        given: Given,
        state: State,
        now: datetime,
        *,
        refusal: Refusal | None = None,
        waited: bool = False,
    ) -> Assessment:
        """Turn an approval into a vote or a refusal, or let it wait; *refusal* is already known."""
        known = state.tracked.get(given.approval.event_key)
        if known is None:
            return await self._unknown(given, state, now, refusal, waited=waited)
        if not self.publisher.concerns(known):
            return self._elsewhere(given)
        vote = as_vote(given, known.event, known.life, now)
        here = await self._sighting(given, known, state, now)
        found = (
            refusal or unfit(given, vote, here, self.runtime.rules) or as_seen(vote, given, here)
        )
        if found is None:
            found = NEVER_CAME if waited else await self._crowd(given, now)
        if isinstance(found, Refusal):
            return self._refused(found, vote, known, now)
        if found is None:
            return Assessment(Receipt(early=[given]), waits_for(given, _STATE_UNKNOWN))
        return await self.cast(found, known, now)

    async def again(self, given: Given, state: State, now: datetime) -> Assessment:
        """The answer to a repeated message: the same as before, while it waits or counts."""
        key = given.approval.event_key
        known = state.tracked.get(key)
        cast, grant = await self._ballot((key, known.life if known else 0))
        mine = [vote for vote in cast if vote.key == given.approval.key]
        if known is None or not any(vote.approver == given.approver for vote in mine):
            wait = [one.seen_as for _, one in await self.runtime.journal.run(early)]
            why = _STATE_UNKNOWN if known else _EVENT_UNKNOWN
            told = waits_for(given, why) if given.seen_as in wait else refused_to(given, _REPLAYED)
            return Assessment(Receipt(), told)
        found = self._judged(cast, known, now)
        return Assessment(Receipt(), self._stands(mine[0], known, found, grant), (key, known.life))

    async def _sighting(
        self, given: Given, known: Tracked, state: State, now: datetime
    ) -> Sighting:
        """What decides which state the approval is about."""
        key, seen = known.event.key, (given.approval.seen or "").casefold()
        begun, answered = await self.runtime.journal.run(
            lambda store: (born(store), published(store, seen))
        )
        pending, last = state.tracked.values(), state.ended.get(key)
        return Sighting(known, now, pending, last, answered, begun, self.ahead)

    @property
    def ahead(self) -> timedelta:
        """How far our clock is ahead of Azure's."""
        return timedelta(seconds=self.runtime.status.source.clock_skew or 0.0)

    async def _unknown(
        self, given: Given, state: State, now: datetime, refusal: Refusal | None, *, waited: bool
    ) -> Assessment:
        """Assess an approval of an event that is over, not here yet, or never seen."""
        begun = await self.runtime.journal.run(born)
        named = given.approval.seen is not None  # whether that is so shows when the event appears
        why = refusal or stale(given, now, born=begun, ahead=self.ahead, named=named)
        if why is None and given.approval.event_key in state.ended:
            why = Refusal("expired", "the scheduled event is over")
        elif why is None and waited:
            why = Refusal("unknown-event", "this bridge has not seen such a scheduled event")
        elif why is None:
            why = await self._crowd(given, now)
        if why is None:
            return Assessment(Receipt(early=[given]), waits_for(given, _EVENT_UNKNOWN))
        told = Outcome(
            "refused",
            given.approval.event_key,
            cause_given(given),
            reason=why.reason,
            detail=why.detail,
        )
        return Assessment(Receipt(events=self.publisher.stray(told, now)), refused_to(given, why))

    async def _crowd(self, given: Given, now: datetime) -> Refusal | None:
        """Why it cannot wait; one that waits already can, and so can a verified one."""
        if given.at < now or given.identity is not None:
            return None
        limits = (MOST_WAITING, self.runtime.config.journal.max_size, self.before)
        crowded = await self.runtime.journal.run(lambda s: is_waiting_crowded(s, given, *limits))
        return _NO_SEATS if crowded else None

    def _elsewhere(self, given: Given) -> Assessment:
        """On a bus, only the bridges concerned react; a local caller always gets an answer."""
        if given.local:
            self.publisher.count("refused", _ELSEWHERE.reason)
        else:
            self.publisher.count("dropped", "not-ours")
        return Assessment(Receipt(), refused_to(given, _ELSEWHERE))

    async def _ballot(self, event: EventLife) -> tuple[list[Vote], GrantState | None]:
        return await self.runtime.journal.run(
            lambda store: (votes(store, *event), grant_of(store, event))
        )

    async def cast(self, vote: Vote, known: Tracked, now: datetime) -> Assessment:
        """Count a vote, unless it changes nothing or comes too late."""
        event = (vote.event_key, vote.life)
        if vote.decision == "approve" and self.runtime.rules.dry_run:
            vote = replace(vote, dry_run=True)
        if not vote.verified and await self._is_crowded(vote):
            return self._refused(_FULL, vote, known, now)
        cast, told = await self._ballot(event)
        standing = next((one for one in cast if one.voter == vote.voter), None)
        refusal = _superfluous(vote, standing, told)
        if refusal is _LATER_STANDS and not vote.local:
            self.publisher.count("dropped", "older")
            return Assessment(Receipt(), told_of(vote, "refused", refusal))
        if refusal is not None:
            return self._refused(refusal, vote, known, now)
        timeout = self.runtime.rules.hold_timeout
        if standing is not None and unchanged(vote, standing, known.event, timeout, cast):
            self.publisher.count("dropped", "unchanged")
            again = renewed(standing, vote)
            receipt = Receipt(votes=[again] if again != standing else [])
            found = self._judged(cast, known, now)
            return Assessment(receipt, self._stands(vote, known, found, told), event)
        lifts = standing is not None and standing.decision == "hold"
        vote = replace(in_order(vote, cast), lifts=lifts)
        cast = [vote, *(one for one in cast if one.voter != vote.voter)]
        found = self._judged(cast, known, now)
        receipt = Receipt(
            votes=[vote],
            events=self._recorded(vote, known, found, now, told, changes=standing is not None),
            duties=self._duties(known, found),
        )
        return Assessment(receipt, self._stands(vote, known, found, told), event)

    async def _is_crowded(self, vote: Vote) -> bool:
        limits = (MOST_UNVERIFIED, self.runtime.config.journal.max_size, self.before)
        return await self.runtime.journal.run(lambda store: is_crowded(store, vote, *limits))

    def _judged(self, cast: Sequence[Vote], known: Tracked, now: datetime) -> Judgment:
        return judge(known.event, cast, self.runtime.rules_for(known), now)

    def _is_enough(self, known: Tracked, found: Judgment) -> bool:
        """Whether to notify Azure; never in a dry run or a drill."""
        return found.satisfied and not self.runtime.rules_for(known).dry_run

    def _duties(self, known: Tracked, found: Judgment) -> dict[EventLife, bool]:
        """Whether we must notify Azure from now on; no change if other bridges go first."""
        event = (known.event.key, known.life)
        if not self._is_enough(known, found):
            return {event: False}
        ours = known.missing_since is None and self.publisher.place(known, found) == 0
        return {event: True} if ours else {}

    def _stands(
        self, vote: Vote, known: Tracked, found: Judgment, told: GrantState | None
    ) -> LocalOutcome:
        if told == "granted":
            return told_of(vote, "granted")
        if self._is_enough(known, found):
            return told_of(vote, "pending")
        return replace(told_of(vote, "recorded"), detail=remark(vote, known, told))

    def _refused(self, why: Refusal, vote: Vote, known: Tracked, now: datetime) -> Assessment:
        told = refused(vote, why, known, self.runtime.rules.require)
        said = self.publisher.answer(told, known, now, local=vote.local)
        return Assessment(Receipt(events=said), told_of(vote, "refused", why))

    def _recorded(
        self,
        vote: Vote,
        known: Tracked,
        found: Judgment,
        now: datetime,
        told: GrantState | None,
        *,
        changes: bool,
    ) -> list[CloudEvent]:
        """`approval.recorded`, unless this vote is the one that satisfies the policy."""
        if self._is_enough(known, found):
            return []
        rules = self.runtime.rules_for(known)
        said = Outcome(
            "recorded",
            vote.event_key,
            cause_of(vote),
            known,
            found,
            str(rules.require),
            detail=remark(vote, known, told),
            dry_run=rules.dry_run,
            would_grant=found.satisfied,
        )
        return self.publisher.answer(said, known, now, local=vote.local, counted=changes)


def _superfluous(vote: Vote, standing: Vote | None, told: GrantState | None) -> Refusal | None:
    """Why a permitted vote changes nothing, or None."""
    if standing is not None and standing.verified and not vote.verified:
        return _TAKEN
    if standing is not None and older(vote, standing):
        return _LATER_STANDS
    if told == "granted" and vote.decision == "hold":
        return _TOLD_ALREADY
    return None
