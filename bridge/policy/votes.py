"""Votes and approval messages, as values."""

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from bridge.core.model import ScheduledEvent

Decision = Literal["approve", "hold", "release"]
DECISIONS: tuple[Decision, ...] = ("approve", "hold", "release")

VoteOutcome = Literal["recorded", "pending", "granted", "refused"]
Voter = tuple[str, str]
"""An approver, and the resource that it votes for, in lower case."""

AUTO, CONTROL, HTTP, REMIND, SINK = "auto", "control", "http", "remind", "sink"
OWN_CHANNELS = frozenset({AUTO, CONTROL, HTTP, REMIND, SINK})
"""The bridge's own channels; no approval source may use these names."""


def is_reserved(approver: str) -> bool:
    """Whether the bridge itself votes under this name: by rule, or when a sink succeeds.

    Its vote would replace a hold that somebody else has under the same name.
    """
    return approver == AUTO or approver.startswith(f"{SINK}:")


REASONS = (
    "malformed", "unauthorized", "replayed", "unknown-event", "not-approvable", "expired",
    "superseded", "resource-required", "rate-limited",
)  # fmt: skip
"""Why an approval does not count. The list is open: a later version may add one."""


class Refusal(NamedTuple):
    """Why an approval does not count: a stable reason, and a sentence."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Approval:
    """What one inbound message says about one scheduled event, before any check.

    `key` detects duplicates and replays; `id` is what people and outcomes call it. `seen` names
    the state of the event that the sender saw, or the CloudEvent that it answers.
    """

    event_id: str
    key: str
    id: str
    decision: Decision = "approve"
    approver: str | None = None
    resource: str | None = None
    reason: str | None = None
    seen: str | None = None

    @property
    def event_key(self) -> str:
        return self.event_id.upper()


@dataclass(frozen=True, slots=True)
class Given:
    """An approval as it arrived; it may have to wait for its event.

    `identity` is the sender's name if it was verified. A local approval was given to this bridge
    only, by HTTP, a command or a sink; no other bridge knows about it. `log` and `recorded` say
    in which log the broker recorded it, and when. `dry_run` says that it came during one.
    """

    approval: Approval
    via: str
    at: datetime
    identity: str | None = None
    position: str | None = None
    signed_at: datetime | None = None
    local: bool = False
    log: str | None = None
    recorded: datetime | None = None
    dry_run: bool = False

    @property
    def approver(self) -> str:
        """Who votes: the verified name, else the claimed one, else the channel's name."""
        return self.identity or self.approval.approver or self.via

    @property
    def seen_as(self) -> str:
        """The key to remember it by: no other sender can use up the ids of a verified name."""
        key = self.approval.key
        # No message can have a key that starts like this.
        return key if self.identity is None else f"\x1f{self.identity}\x1f{key}"


@dataclass(frozen=True, slots=True)
class Announced:
    """The event at the time of a vote: an approval lapses when the event gets worse."""

    event_type: str
    resources: tuple[str, ...]
    not_before: datetime | None


@dataclass(frozen=True, slots=True)
class Vote:
    """The latest vote of one approver for one resource in one life of a scheduled event.

    `at` is when it started to count here; `resource` is empty when the vote is for all of them.
    `lifts` says that the same approver held before. An approval cast in a dry run counts only
    during one.
    """

    event_key: str
    life: int
    approver: str
    resource: str
    decision: Decision
    approval: str
    key: str
    at: datetime
    via: str
    verified: bool = False
    position: str | None = None
    reason: str | None = None
    about: Announced = field(default_factory=lambda: Announced("", (), None))
    signed_at: datetime | None = None
    local: bool = False
    lifts: bool = False
    log: str | None = None
    recorded: datetime | None = None
    dry_run: bool = False

    @property
    def voter(self) -> Voter:
        """Who votes for what: a later vote of the same voter replaces this one."""
        return self.approver, self.resource.casefold()


@dataclass(frozen=True, slots=True)
class LocalOutcome:
    """The result of a local vote on one scheduled event, as returned to its caller.

    A pending vote waits for its event to appear, or for Azure to accept the approval.
    """

    event_id: str
    outcome: VoteOutcome
    approval_id: str
    reason: str | None = None
    detail: str | None = None


_HARSHNESS = {"freeze": 0, "reboot": 1, "redeploy": 2, "preempt": 3, "terminate": 3}


def lapsed(vote: Vote, event: ScheduledEvent) -> bool:
    """Whether the event got worse since an approval. Holds and releases never lapse."""
    return lapses(event)(vote)


def lapses(event: ScheduledEvent) -> Callable[[Vote], bool]:
    """`lapsed` for many votes on *event*: it compares each state that they are about once.

    Otherwise the cost of counting would grow with the product of votes and VMs.
    """
    names = {name.casefold() for name in event.resources}
    compared: dict[int, tuple[Announced, bool]] = {}  # by identity, so each one must be kept

    def has_lapsed(vote: Vote) -> bool:
        if vote.decision != "approve":
            return False
        before = vote.about
        if id(before) not in compared:
            compared[id(before)] = before, _worse(before, event, names)
        return compared[id(before)][1]

    return has_lapsed


def _worse(before: Announced, event: ScheduledEvent, names: AbstractSet[str]) -> bool:
    """Whether *event*, with these names in lower case, has more VMs, is harsher, or is earlier."""
    same = before.resources == event.resources
    if not same and not names <= {name.casefold() for name in before.resources}:
        return True
    if _harsher(before.event_type.casefold(), event.event_type.casefold()):
        return True
    if event.not_before is None or before.not_before is None:
        return False
    return event.not_before < before.not_before


def _harsher(before: str, now: str) -> bool:
    """Whether *now* is harsher; an unknown type counts as harsher."""
    if before == now:
        return False
    if before in _HARSHNESS and now in _HARSHNESS:
        return _HARSHNESS[now] > _HARSHNESS[before]
    return True


def unchanged(
    vote: Vote,
    standing: Vote,
    event: ScheduledEvent,
    hold_timeout: timedelta,
    cast: Iterable[Vote] = (),
) -> bool:
    """Whether *vote* repeats a vote that still counts; *cast* are all votes on the event."""
    if vote.decision != standing.decision or lapsed(standing, event):
        return False
    since = (one for one in _holding(standing.approver, cast) if one.at > standing.at)
    if vote.decision != "approve" and any(since):
        return False  # a release for all VMs may have ended this hold, or a hold followed this one
    if vote.verified and not standing.verified:
        return False
    if standing.dry_run and not vote.dry_run:
        return False
    return vote.decision != "hold" or vote.at < standing.at + hold_timeout


def in_order(vote: Vote, cast: Iterable[Vote]) -> Vote:
    """A hold or release is later than those of the same approver, even if the clock was set back.

    A release for all VMs ends the holds before it, and none after it.
    """
    if vote.decision == "approve":
        return vote
    latest = max((one.at for one in _holding(vote.approver, cast)), default=None)
    if latest is None or latest < vote.at:
        return vote
    return replace(vote, at=latest + timedelta(microseconds=1))


def _holding(approver: str, cast: Iterable[Vote]) -> Iterator[Vote]:
    """The holds and releases of one approver."""
    return (one for one in cast if one.approver == approver and one.decision != "approve")


def renewed(standing: Vote, vote: Vote) -> Vote:
    """*standing*, repeated by *vote*: a vote older than the later of the two replaces neither."""
    signed = [moment for moment in (standing.signed_at, vote.signed_at) if moment is not None]
    later = standing if vote.position is None or _behind(vote, standing) else vote
    return replace(
        standing,
        signed_at=max(signed, default=None),
        position=later.position,
        log=later.log,
        recorded=later.recorded,
    )


def older(vote: Vote, standing: Vote) -> bool:
    """Whether *vote* was given before *standing*: by position in one log, else by signing time.

    If neither can be compared, the order of arrival counts. A hold is older only if both record
    times show that it comes from the same log: to drop one by mistake is the worse error.
    """
    if (behind := _behind(vote, standing)) is not None:
        return behind and (vote.decision != "hold" or _recorded_later(vote, standing) is False)
    if vote.decision == "hold":
        return False
    if vote.signed_at is not None and standing.signed_at is not None:
        return vote.signed_at < standing.signed_at
    return False


def _behind(vote: Vote, standing: Vote) -> bool | None:
    """Whether *vote* comes first in their log; None when they are not in one log.

    A lower offset that was recorded later is in another log: the topic was created again.
    """
    if vote.log is None or vote.log != standing.log:
        return None
    offset, other = _offset(vote), _offset(standing)
    if offset is None or other is None:
        return None
    if offset < other and _recorded_later(vote, standing):
        return None
    return offset < other


def _recorded_later(vote: Vote, standing: Vote) -> bool | None:
    """None when a record time is not known."""
    if vote.recorded is None or standing.recorded is None:
        return None
    return vote.recorded > standing.recorded


def _offset(vote: Vote) -> int | None:
    number = (vote.position or "").rpartition("/")[2]
    return int(number) if _is_number(number) else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20
