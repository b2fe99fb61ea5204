"""Which state of a scheduled event an approval is about: the one that its sender saw; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bridge.core.cloudevent import CloudEvent
from bridge.core.diff import with_past
from bridge.core.ids import safe_id
from bridge.core.state import Ended, PastState, Tracked
from bridge.policy.allow import stale
from bridge.policy.judge import Rules, objection
from bridge.policy.votes import Announced, Given, Refusal, Vote, lapsed

_ANOTHER_EVENT = Refusal("malformed", "seen names a state or a CloudEvent of another event")
_ANOTHER_LIFE = Refusal("superseded", "it was given in an earlier life of the event")
_HINT = "send data.state of the CloudEvent as seen"
_WORSE = Refusal(
    "superseded",
    "since its sender saw it, the event gained a VM, became more severe or moved earlier",
)
_BEFORE_JOURNAL = Refusal(
    "superseded", f"it is older than this bridge's journal and names no known state; {_HINT}"
)
_BEFORE_FIRST = Refusal(
    "superseded", f"this bridge does not know which state the event had then; {_HINT}"
)
NEVER_CAME = Refusal("superseded", "seen names a state that this bridge has never seen")


@dataclass(frozen=True, slots=True)
class Sighting:
    """What the bridge knows when it asks what an approval is about.

    `pending` are all pending events, `last` is the end of the event's previous life,
    `answered` is the CloudEvent that `seen` names. `born` is when the journal was created, and our
    clock is *ahead* by that much; the times of states are Azure's.
    """

    known: Tracked
    now: datetime
    pending: Iterable[Tracked] = ()
    last: Ended | None = None
    answered: CloudEvent | None = None
    born: datetime | None = None
    ahead: timedelta = field(default=timedelta())
    past: tuple[PastState, ...] = field(init=False)

    def __post_init__(self) -> None:
        past = with_past(self.known, self.now - self.ahead).past
        object.__setattr__(self, "past", past)


def unfit(given: Given, vote: Vote, here: Sighting, rules: Rules) -> Refusal | None:
    """Why the approval does not count, whatever state its sender saw.

    A hold may name any state: it is about the event as such.
    """
    refusal = objection(given, vote, here.known.event, rules)
    if refusal and refusal.reason == "unauthorized":
        return refusal
    old = stale(
        given,
        here.now,
        since=here.known.since,
        born=here.born,
        ahead=here.ahead,
        ended=here.last.at if here.last else None,
        named=_named(given, here) is not None,
    )
    return old or refusal or (None if vote.decision == "hold" else _misplaced(given, here))


def _misplaced(given: Given, here: Sighting) -> Refusal | None:
    """Why it is about another event, or another life of this one."""
    moment = given.signed_at or _recorded(given, here)
    if moment is not None and here.last is not None and moment <= here.last.at:
        return _ANOTHER_LIFE
    if given.approval.seen is None or _named(given, here):
        return None
    seen = given.approval.seen.casefold()
    others = (other for other in here.pending if other is not here.known)
    if any(one.digest == seen for other in others for one in other.past):
        return _ANOTHER_EVENT
    if here.answered is None:
        return None
    if here.answered.key != safe_id(here.known.event.key):
        return _ANOTHER_EVENT
    life = here.answered.data.get("life")
    return _ANOTHER_LIFE if life not in (None, here.known.life) else None


def as_seen(vote: Vote, given: Given, here: Sighting) -> Vote | Refusal | None:
    """The vote, on the state that its sender saw; None while that is unknown.

    Only an approval is about a state: a hold or a release is about the event as such.
    """
    if vote.decision != "approve":
        return vote
    state = _saw(given, here)
    if not isinstance(state, PastState):
        return state
    about = Announced(state.event_type, state.resources, state.not_before)
    vote = replace(vote, about=about)
    return _WORSE if lapsed(vote, here.known.event) else vote


def _saw(given: Given, here: Sighting) -> PastState | Refusal | None:
    """The state that an approval is about; None while the one that it names is unknown."""
    if (named := _named(given, here)) is not None:
        return named
    if _is_older(given, here):
        return _BEFORE_JOURNAL
    return _at_its_time(given, here) if given.approval.seen is None else _answered(given, here)


def _named(given: Given, here: Sighting) -> PastState | None:
    seen = (given.approval.seen or "").casefold()
    return next((one for one in here.past if one.digest == seen), None)


def _recorded(given: Given, here: Sighting) -> datetime | None:
    """When it was recorded; without a log, that time is from our clock."""
    if given.recorded is None or given.log is not None:
        return given.recorded
    return given.recorded - here.ahead


def _is_older(given: Given, here: Sighting) -> bool:
    """Whether it was given before this journal was created."""
    moment = given.signed_at or _recorded(given, here)
    if moment is None or here.born is None:
        return False
    return moment < here.born.replace(microsecond=0) - here.ahead


def _answered(given: Given, here: Sighting) -> PastState | Refusal | None:
    """The state that the CloudEvent in `seen` told.

    The id of a first announcement does not depend on the state, so on a bus it may come from a
    bridge that saw the event earlier: then the first state that we know counts.
    """
    cloudevent = here.answered
    if cloudevent is None:
        return None
    if not cloudevent.is_transition:
        told = datetime.fromisoformat(cloudevent.envelope["time"])  # by our clock
        return _in_force(told - here.ahead, here.past) or _BEFORE_FIRST
    if cloudevent.kind != "updated" and not given.local:
        return _first(given, here)
    state = cloudevent.data.get("state")
    return next((one for one in here.past if one.digest == state), _BEFORE_FIRST)


def _at_its_time(given: Given, here: Sighting) -> PastState | Refusal:
    """The state in force when it was signed, else recorded, else when it arrived."""
    past, arrival = here.past, given.at - here.ahead
    moment = given.signed_at or _recorded(given, here)
    if moment is None or moment >= arrival:
        waited = given.at < here.now
        return (_in_force(arrival, past) or past[0]) if waited else past[-1]
    return _in_force(moment, past) or _first(given, here)


def _in_force(moment: datetime, past: Sequence[PastState]) -> PastState | None:
    """The last state that began before then.

    Signatures know whole seconds: a change within that second counts as later.
    """
    return next((one for one in reversed(past) if one.since < moment), None)


def _first(given: Given, here: Sighting) -> PastState | Refusal:
    """The first state that we know, unless it was published earlier, while nobody watched.

    A signing time before that proves nothing: clocks may differ.
    """
    first, recorded = here.past[0], _recorded(given, here)
    early = recorded is not None and recorded < first.since.replace(microsecond=0)
    return _BEFORE_FIRST if early and not here.known.watched else first
