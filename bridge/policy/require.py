"""Which approvals are enough: one, one for each VM, a number of approvers, or named ones."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from bridge.common.fields import Settings
from bridge.core.model import ScheduledEvent
from bridge.policy.allow import Allow, Name
from bridge.policy.votes import CONTROL, Refusal, Vote, Voter


class Count(Settings):
    """A number of different verified approvers."""

    count: int = Field(ge=1, le=1000, description="how many different verified approvers")

    def __str__(self) -> str:
        return f"count: {self.count}"


class Approvers(Settings):
    """Each of these verified approvers."""

    approvers: Annotated[tuple[Name, ...], Field(min_length=1)] = Field(
        description="each of these verified approvers"
    )

    def __str__(self) -> str:
        return f"approvers: {', '.join(self.approvers)}"


Require = Literal["any", "each-resource"] | Count | Approvers
ANY_APPROVER = ("any",)
"""What is missing when one approval is enough and there is none."""


class Tally(NamedTuple):
    """What is approved, what is missing, and since when nothing is missing."""

    have: tuple[str, ...]
    missing: tuple[str, ...]
    since: datetime | None


class Times:
    """Votes in the order of time. Only the removal of the first or last one has them searched."""

    def __init__(self) -> None:
        self._votes: dict[Voter, Vote] = {}
        self._ends: tuple[Vote, Vote] | None = None

    def add(self, vote: Vote) -> None:
        first, last = self._ends or self._search() or (vote, vote)
        self._votes[vote.voter] = vote
        self._ends = min(first, vote, key=_when), max(last, vote, key=_when)

    def remove(self, vote: Vote) -> bool:
        if self._votes.pop(vote.voter, None) is None:
            return False
        if self._ends is not None and any(vote is end for end in self._ends):
            self._ends = None
        return True

    @property
    def first(self) -> Vote | None:
        return (ends := self._search()) and ends[0]

    @property
    def last(self) -> Vote | None:
        return (ends := self._search()) and ends[1]

    def _search(self) -> tuple[Vote, Vote] | None:
        if self._ends is None and self._votes:
            votes = self._votes.values()
            self._ends = min(votes, key=_when), max(votes, key=_when)
        return self._ends


def _when(vote: Vote) -> tuple[datetime, Voter]:
    return vote.at, vote.voter


def seat(
    vote: Vote, event: ScheduledEvent, require: Require, for_all: Callable[[Vote], bool]
) -> str | None:
    """What an approval fills: a VM in lower case, "" for all VMs, or a name; None if nothing.

    *for_all* says whether one without a resource covers all VMs.
    """
    if isinstance(require, Count | Approvers):
        return vote.approver if vote.verified else None
    if require == "any" or not event.resources:
        return vote.approver
    if vote.resource:
        return vote.resource.casefold()
    return "" if len(event.resources) == 1 or for_all(vote) else None


def tally(event: ScheduledEvent, first: Mapping[str, datetime], require: Require) -> Tally:
    """Count the seats that are filled; *first* says since when each one is."""
    if isinstance(require, Count | Approvers):
        return _by_name(first, require)
    if require == "any" or not event.resources:
        have = _in_time(first)
        return Tally(have, (), first[have[0]]) if have else Tally((), ANY_APPROVER, None)
    return _each(event, first)


def _in_time(first: Mapping[str, datetime]) -> tuple[str, ...]:
    """The names, the earliest first."""
    return tuple(sorted(first, key=lambda name: (first[name], name)))


def _by_name(first: Mapping[str, datetime], require: Count | Approvers) -> Tally:
    """Count each approver once."""
    if isinstance(require, Count):
        have, lacking = _in_time(first), require.count - len(first)
        since = first[have[require.count - 1]] if lacking <= 0 else None
        return Tally(have, (f"{lacking} more",) if lacking > 0 else (), since)
    have = tuple(name for name in require.approvers if name in first)
    missing = tuple(name for name in require.approvers if name not in first)
    return Tally(have, missing, None if missing else max(first[name] for name in have))


def _each(event: ScheduledEvent, first: Mapping[str, datetime]) -> Tally:
    """Count each VM once."""
    whole, names = first.get(""), event.resources
    times = [_earlier(first.get(name.casefold()), whole) for name in names]
    have = tuple(name for name, at in zip(names, times, strict=True) if at is not None)
    missing = tuple(name for name, at in zip(names, times, strict=True) if at is None)
    return Tally(have, missing, None if missing else max(at for at in times if at is not None))


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    return min(one, other) if one and other else one or other


def uncounted(vote: Vote, require: Require) -> Refusal | None:
    """Why the policy does not count this approver's approval; anyone's hold counts."""
    if vote.decision != "approve" or not isinstance(require, Count | Approvers):
        return None
    if not vote.verified:
        why = f"{vote.approver} is not verified, and only verified approvers count"
        return Refusal("unauthorized", why)
    if isinstance(require, Approvers) and vote.approver not in require.approvers:
        return Refusal("unauthorized", f"{vote.approver} is not one of the required approvers")
    return None


def with_remedy(refusal: Refusal, vote: Vote, allow: Sequence[Allow], require: Require) -> Refusal:
    """Tell users of the control socket what would make their vote count: they are the operators."""
    if vote.via != CONTROL or any(rule.approver == vote.approver for rule in allow):
        return refusal
    return refusal._replace(detail=refusal.detail + _remedy(vote, require))


def _remedy(vote: Vote, require: Require) -> str:
    required = require.approvers if isinstance(require, Approvers) else ()
    if required and vote.decision == "approve" and vote.approver not in required:
        who = " and ".join(required)
        return f", and approvals.require counts {who} only: sign the vote as one of them"
    return f"; add {{approver: {vote.approver}, via: control}} to it, or sign the vote"
