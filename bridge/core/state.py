"""What we know of the scheduled events, and what we find to have happened to them, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from bridge.core.cloudevent import TransitionKind
from bridge.core.model import ScheduledEvent

REHEARSED = 0
"""The life of a drill. Azure's begin at 1, so what is said of a drill is said of no event."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """A scheduled event that is pending, as last seen, and what we have said of it.

    `since` is when it was first announced in this life.
    """

    event: ScheduledEvent
    life: int = 1
    announced: bool = False
    affected: bool | None = None
    states: Mapping[str, int] = field(default_factory=dict)
    missing_since: datetime | None = None
    booted: bool = False
    since: datetime | None = None

    @property
    def drill(self) -> bool:
        return self.life == REHEARSED


@dataclass(frozen=True, slots=True)
class Ended:
    """The last life of an event whose end was announced."""

    life: int
    at: datetime


@dataclass(frozen=True, slots=True)
class State:
    """All that must survive a restart for the next document to be judged rightly."""

    tracked: Mapping[str, Tracked] = field(default_factory=dict)
    ended: Mapping[str, Ended] = field(default_factory=dict)
    incarnation: int | str | None = None
    last_good: datetime | None = None
    settle_until: datetime | None = None
    boot_id: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What a document does not say: time, place, and what we did ourselves."""

    now: datetime
    vm_name: str | None = None
    scope: Literal["own", "all"] = "own"
    boot_id: str | None = None
    watching: bool = True
    approved: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Transition:
    """What happened to a scheduled event, as far as one can tell."""

    what: TransitionKind
    event: ScheduledEvent
    life: int
    affected: bool | None
    previous_status: str | None = None
    inferred: bool = False
    changes: Mapping[str, Any] = field(default_factory=dict)
    repeat: int = 0

    @property
    def drill(self) -> bool:
        return self.life == REHEARSED


@dataclass(frozen=True, slots=True)
class Step:
    """The new state, what happened, and what was odd (EventIds that went back to Scheduled)."""

    state: State
    transitions: tuple[Transition, ...] = ()
    regressed: tuple[str, ...] = ()
