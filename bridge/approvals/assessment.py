"""Turns an approval into a vote: decides whether it counts, waits or is refused, and why."""

from dataclasses import dataclass, replace
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
from bridge.journal.store import Store, born
from bridge.journal.views import published
from bridge.journal.votes import (
    Receipt,
    counted_votes,
    early,
    is_crowded,
    is_waiting_crowded,
)
from bridge.policy.allow import stale
from bridge.policy.judge import Judgment, as_vote
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

    def remembering(self, key: tuple[str, str], *, local: bool) -> "Assessment":
        """Remember the message's key, unless a refused sender may try again."""
        refused = self.outcome.outcome == "refused"
        if refused and (local or self.outcome.reason in {"unauthorized", "rate-limited"}):
            return self
        return replace(self, receipt=replace(self.receipt, keys=[key]))


@dataclass(slots=True)
class Assessor:
    """Assesses one approval at a time, in the journal's thread.

    What it returns must be recorded before the next approval is assessed.
    """

    runtime: Runtime
    publisher: Publisher

    def assess(
        self,
        store: Store,
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
            return self._unknown(store, given, state, now, refusal, waited=waited)
        if not self.publisher.concerns(known):
            return self._elsewhere(given)
        vote = as_vote(given, known.event, known.life, now)
        here = self._sighting(store, given, known, state, now)
        found = (
            refusal or unfit(given, vote, here, self.runtime.rules) or as_seen(vote, given, here)
        )
        if found is None:
            found = NEVER_CAME if waited else self._crowd(store, given, now)
        if isinstance(found, Refusal):
            return self._refused(found, vote, known, now)
        if found is None:
            return Assessment(Receipt(early=[given]), waits_for(given, _STATE_UNKNOWN))
        return self.cast(store, found, known, now)

    def again(self, store: Store, given: Given, state: State, now: datetime) -> Assessment:
        """The answer to a repeated message: the same as before, while it waits or counts."""
        known = state.tracked.get(given.approval.event_key)
        if known is None:
            return self._repeated(store, given, _EVENT_UNKNOWN)
        votes = counted_votes(store, known, self.runtime.rules_for(known))
        mine = [vote for vote in votes.votes.values() if vote.key == given.approval.key]
        if not any(vote.approver == given.approver for vote in mine):
            return self._repeated(store, given, _STATE_UNKNOWN)
        event, found = (known.event.key, known.life), votes.judge(now)
        stands = self._stands(mine[0], known, found, grant_of(store, event))
        return Assessment(Receipt(), stands, event)

    @staticmethod
    def _repeated(store: Store, given: Given, why: str) -> Assessment:
        wait = [one.seen_as for _, one in early(store)]
        told = waits_for(given, why) if given.seen_as in wait else refused_to(given, _REPLAYED)
        return Assessment(Receipt(), told)

    def _sighting(
        self, store: Store, given: Given, known: Tracked, state: State, now: datetime
    ) -> Sighting:
        """What decides which state the approval is about."""
        seen = (given.approval.seen or "").casefold()
        answered = published(store, seen) if seen else None
        pending, last = state.tracked.values(), state.ended.get(known.event.key)
        return Sighting(known, now, pending, last, answered, born(store), self.ahead)

    @property
    def ahead(self) -> timedelta:
        """How far our clock is ahead of Azure's."""
        return timedelta(seconds=self.runtime.status.source.clock_skew or 0.0)

    def _unknown(
        self,
        store: Store,
        given: Given,
        state: State,
        now: datetime,
        refusal: Refusal | None,
        *,
        waited: bool,
    ) -> Assessment:
        """Assess an approval of an event that is over, not here yet, or never seen."""
        named = given.approval.seen is not None  # whether that is so shows when the event appears
        why = refusal or stale(given, now, born=born(store), ahead=self.ahead, named=named)
        if why is None and given.approval.event_key in state.ended:
            why = Refusal("expired", "the scheduled event is over")
        elif why is None and waited:
            why = Refusal("unknown-event", "this bridge has not seen such a scheduled event")
        elif why is None:
            why = self._crowd(store, given, now)
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

    def _crowd(self, store: Store, given: Given, now: datetime) -> Refusal | None:
        """Why it cannot wait; one that waits already can, and so can a verified one."""
        if given.at < now or given.identity is not None:
            return None
        most = self.runtime.config.journal.max_size
        return _NO_SEATS if is_waiting_crowded(store, given, MOST_WAITING, most) else None

    def _elsewhere(self, given: Given) -> Assessment:
        """On a bus, only the bridges concerned react; a local caller always gets an answer."""
        if given.local:
            self.publisher.count("refused", _ELSEWHERE.reason)
        else:
            self.publisher.count("dropped", "not-ours")
        return Assessment(Receipt(), refused_to(given, _ELSEWHERE))

    def cast(self, store: Store, vote: Vote, known: Tracked, now: datetime) -> Assessment:
        """Count a vote, unless it changes nothing or comes too late."""
        rules = self.runtime.rules_for(known)
        if vote.decision == "approve" and self.runtime.rules.dry_run:
            vote = replace(vote, dry_run=True)
        votes, event = counted_votes(store, known, rules), (vote.event_key, vote.life)
        if not vote.verified and self._is_crowded(store, vote):
            return self._refused(_FULL, vote, known, now)
        told, standing = grant_of(store, event), votes.votes.get(vote.voter)
        refusal = _superfluous(vote, standing, told)
        if refusal is _LATER_STANDS and not vote.local:
            self.publisher.count("dropped", "older")
            return Assessment(Receipt(), told_of(vote, "refused", refusal))
        if refusal is not None:
            return self._refused(refusal, vote, known, now)
        holding = votes.holding(vote.approver)
        if standing is not None and unchanged(
            vote, standing, known.event, rules.hold_timeout, holding
        ):
            self.publisher.count("dropped", "unchanged")
            again = renewed(standing, vote)
            receipt = Receipt(votes=[again] if again != standing else [])
            return Assessment(receipt, self._stands(vote, known, votes.judge(now), told), event)
        lifts = standing is not None and standing.decision == "hold"
        vote = replace(in_order(vote, holding), lifts=lifts)
        votes.put(vote)
        found = votes.judge(now)
        receipt = Receipt(
            votes=[vote],
            events=self._recorded(vote, known, found, now, told, changes=standing is not None),
            duties=self._duties(known, found),
        )
        return Assessment(receipt, self._stands(vote, known, found, told), event)

    def _is_crowded(self, store: Store, vote: Vote) -> bool:
        return is_crowded(store, vote, MOST_UNVERIFIED, self.runtime.config.journal.max_size)

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
