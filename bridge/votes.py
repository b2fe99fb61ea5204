"""Votes and what an approval message says, as values."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Decision = Literal["approve", "hold", "release"]
DECISIONS: tuple[Decision, ...] = ("approve", "hold", "release")


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

    `identity` is the sender's name if the transport proved it.
    """

    approval: Approval
    via: str
    at: datetime
    identity: str | None = None
    position: str | None = None

    @property
    def approver(self) -> str:
        """Who speaks: what was proved, else what is claimed, else whoever may use the channel."""
        return self.identity or self.approval.approver or self.via


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

    @property
    def voice(self) -> tuple[str, str]:
        """Who speaks for what: a later vote of the same voice takes the place of this one."""
        return self.approver, self.resource.casefold()
