"""Which approvals are enough: one, one for each VM, a number of approvers, or named ones."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from bridge.common.fields import Settings
from bridge.core.model import ScheduledEvent
from bridge.policy.allow import Name
from bridge.policy.votes import Refusal, Vote


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


@dataclass(frozen=True, slots=True)
class Tally:
    """What is approved, what is missing, and since when nothing is missing."""

    have: tuple[str, ...]
    missing: tuple[str, ...]
    since: datetime | None


def tally(
    event: ScheduledEvent,
    approvals: Sequence[Vote],
    require: Require,
    for_all: Callable[[Vote], bool],
) -> Tally:
    """Count *approvals*, oldest first; *for_all* says which VMs one without a resource covers."""
    if isinstance(require, Count | Approvers):
        return _by_name(approvals, require)
    if require == "any" or not event.resources:
        have = tuple(dict.fromkeys(vote.approver for vote in approvals))
        return Tally(have, (), approvals[0].at) if have else Tally((), ANY_APPROVER, None)
    return _each(event, approvals, for_all)


def _by_name(approvals: Sequence[Vote], require: Count | Approvers) -> Tally:
    """Count each verified approver once, and nobody else."""
    first: dict[str, datetime] = {}
    for vote in approvals:
        if vote.verified:
            first.setdefault(vote.approver, vote.at)
    if isinstance(require, Count):
        lacking = require.count - len(first)
        since = sorted(first.values())[require.count - 1] if lacking <= 0 else None
        return Tally(tuple(first), (f"{lacking} more",) if lacking > 0 else (), since)
    have = tuple(name for name in require.approvers if name in first)
    missing = tuple(name for name in require.approvers if name not in first)
    return Tally(have, missing, None if missing else max(first[name] for name in have))


def _each(
    event: ScheduledEvent, approvals: Sequence[Vote], for_all: Callable[[Vote], bool]
) -> Tally:
    """Count each VM once. Only the first vote that covers all of them can matter."""
    named: dict[str, datetime] = {}
    whole: datetime | None = None
    for vote in approvals:
        if vote.resource:
            named.setdefault(vote.resource.casefold(), vote.at)
        elif whole is None and (len(event.resources) == 1 or for_all(vote)):
            whole = vote.at
    first = {name: _earlier(named.get(name.casefold()), whole) for name in event.resources}
    have = tuple(name for name in event.resources if first[name] is not None)
    missing = tuple(name for name in event.resources if first[name] is None)
    times = [at for at in first.values() if at is not None]
    return Tally(have, missing, None if missing else max(times))


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
