"""Votes and what an approval message says, as values."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Decision = Literal["approve", "hold", "release"]
DECISIONS: tuple[Decision, ...] = ("approve", "hold", "release")

Became = Literal["recorded", "pending", "granted", "refused"]

AUTO, CONTROL, HTTP, REMIND, SINK = "auto", "control", "http", "remind", "sink"
OWN_CHANNELS = frozenset({AUTO, CONTROL, HTTP, REMIND, SINK})
"""Channels of the bridge itself; no approval source may have such a name."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an approval does not count: a stable word, and a sentence."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Approval:
    """What one inbound message says about one scheduled event, before anybody judged it.

    `key` is for dedupe and replay; `id` is how people and outcomes name it.
    """

    event_id: str
    key: str
    id: str
    decision: Decision = "approve"
    approver: str | None = None
    resource: str | None = None
    reason: str | None = None

    @property
    def event_key(self) -> str:
        return self.event_id.upper()


@dataclass(frozen=True, slots=True)
class Given:
    """An approval as it arrived; it may have to wait for its event.

    `identity` is the sender's name if it was proved. A local one was given to this very bridge,
    by HTTP, a command or a sink, and no other bridge knows of it.
    """

    approval: Approval
    via: str
    at: datetime
    identity: str | None = None
    position: str | None = None
    signed_at: datetime | None = None
    local: bool = False

    @property
    def approver(self) -> str:
        """Who speaks: what was proved, else what is claimed, else whoever may use the channel."""
        return self.identity or self.approval.approver or self.via

    @property
    def seen_as(self) -> str:
        """The key under which it is remembered: nobody can use up the ids of a proved name."""
        key = self.approval.key
        # No message can have a key that begins like this.
        return key if self.identity is None else f"\x1f{self.identity}\x1f{key}"


@dataclass(frozen=True, slots=True)
class Announced:
    """The event as it stood when somebody voted: a vote lapses when it turns for the worse."""

    event_type: str
    resources: tuple[str, ...]
    not_before: datetime | None


@dataclass(frozen=True, slots=True)
class Vote:
    """One voice: the latest of one approver for one resource in one life of a scheduled event.

    `at` is when it began to count here; `resource` is empty when it was given for all of them.
    `lifts` tells that the same voice held before.
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

    @property
    def voice(self) -> tuple[str, str]:
        """Who speaks for what: a later vote of the same voice takes the place of this one."""
        return self.approver, self.resource.casefold()


@dataclass(frozen=True, slots=True)
class LocalOutcome:
    """What became of a local vote on one scheduled event, as its caller is told.

    Pending is a vote that waits: for its event to show, or for Azure to take what it led to.
    """

    event_id: str
    outcome: Became
    approval_id: str
    reason: str | None = None
    detail: str | None = None
