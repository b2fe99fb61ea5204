"""Our state of the scheduled events, and their changes, as values; and what is tracked as JSON."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any, Literal, NamedTuple

from bridge.core.cloudevent import TransitionKind
from bridge.core.model import ScheduledEvent

REHEARSED = 0
"""The life of a drill. Azure's events start at 1, so the two are never confused."""


@dataclass(frozen=True, slots=True)
class PastState:
    """A state that a scheduled event had here, and from when on; it ends when the next begins.

    `digest` is the state's name in `data.state`, and the rest is what decides whether another
    state is worse.
    """

    digest: str
    since: datetime
    event_type: str
    resources: tuple[str, ...]
    not_before: datetime | None


@dataclass(frozen=True, slots=True)
class Tracked:
    """A pending scheduled event as last seen, and what we have published about it.

    `since` is when it was first announced in this life. `past` are its states in this life, the
    present one last. `watched` says that they are all that it had: we were polling when it
    appeared, and have forgotten none.
    """

    event: ScheduledEvent
    life: int = 1
    announced: bool = False
    affected: bool | None = None
    states: Mapping[str, int] = field(default_factory=dict)
    missing_since: datetime | None = None
    booted: bool = False
    since: datetime | None = None
    past: tuple[PastState, ...] = ()
    watched: bool = False

    @property
    def drill(self) -> bool:
        return self.life == REHEARSED


class Ended(NamedTuple):
    """The last life of an event whose end was announced."""

    life: int
    at: datetime


class Ends(Mapping[str, Ended]):
    """Events that have ended, the latest last.

    There may be tens of thousands, and one more must not cost a copy of all. So most of them are
    in `old`, which successors share, and only the latest in `new`.
    """

    __slots__ = ("new", "old")
    _MOST_NEW = 256

    def __init__(self, old: Mapping[str, Ended], new: Mapping[str, Ended]) -> None:
        self.old, self.new = old, new

    @classmethod
    def of(cls, ends: Mapping[str, Ended]) -> "Ends":
        return ends if isinstance(ends, Ends) else Ends(ends, {})

    def __getitem__(self, key: str) -> Ended:
        return self.new[key] if key in self.new else self.old[key]

    def __iter__(self) -> Iterator[str]:
        return chain(self.old, self.new)

    def __len__(self) -> int:
        return len(self.old) + len(self.new)

    def __repr__(self) -> str:
        return f"Ends({dict(self)})"

    def adding(self, more: Mapping[str, Ended]) -> "Ends":
        """These and *more*; an event that ends again is among the latest again."""
        new = {key: end for key, end in self.new.items() if key not in more} | dict(more)
        if len(new) <= self._MOST_NEW and self.old.keys().isdisjoint(more):
            return Ends(self.old, new)
        return Ends({key: end for key, end in self.old.items() if key not in more} | new, {})

    def since(self, before: Mapping[str, Ended]) -> tuple[list[str], list[tuple[str, Ended]]]:
        """What is no longer there, and what is new or different, compared with *before*."""
        was, now, then = Ends.of(before), self.new, self.old
        shared = was.old is self.old
        past = was.new if shared else {**was.old, **was.new}
        present = now if shared else {**then, **now}
        gone = [key for key in past if key not in present]
        return gone, [(k, end) for k, end in present.items() if past.get(k) != end]


@dataclass(frozen=True, slots=True)
class State:
    """All that must survive a restart to compare the next document correctly."""

    tracked: Mapping[str, Tracked] = field(default_factory=dict)
    ended: Mapping[str, Ended] = field(default_factory=dict)
    incarnation: int | str | None = None
    last_good: datetime | None = None
    settle_until: datetime | None = None
    boot_id: str | None = None


class Facts(NamedTuple):
    """What a document does not say: the time, the VM, and what we did ourselves."""

    now: datetime
    vm_name: str | None = None
    scope: Literal["own", "all"] = "own"
    boot_id: str | None = None
    watching: bool = True
    approved: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of a scheduled event, as far as we can tell."""

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


class Step(NamedTuple):
    """The new state, the changes, and anomalies (EventIds that went back to Scheduled)."""

    state: State
    transitions: tuple[Transition, ...] = ()
    regressed: tuple[str, ...] = ()


def shallow(value: object) -> dict[str, Any]:
    """The fields of a dataclass by name; what is inside of them is not copied."""
    names: Iterable[str] = getattr(value, "__dataclass_fields__", ())
    return {name: getattr(value, name) for name in names}


def plain(value: object) -> object:
    """For `json`, what it cannot write itself: times, and dataclasses level by level."""
    found = value.isoformat() if isinstance(value, datetime) else shallow(value)
    if not found:
        raise TypeError(f"cannot write {type(value).__name__} into the journal")
    return found


_JSON = json.JSONEncoder(default=plain, separators=(",", ":"))


def encode_tracked(known: Tracked) -> str:
    body = _with_times(known, "missing_since", "since")
    body["event"] = _with_times(known.event, "not_before")
    body["past"] = [_with_times(one, "since", "not_before") for one in known.past]
    return _JSON.encode(body)


def _with_times(value: object, *times: str) -> dict[str, Any]:
    """The fields of a dataclass, and these as text: many events share their times."""
    fields = shallow(value)
    for name in times:
        fields[name] = fields[name] and _isoformat(fields[name])
    return fields


@lru_cache(maxsize=256)
def _isoformat(moment: datetime) -> str:
    return moment.isoformat()


def decode_tracked(text: str) -> Tracked:
    body: dict[str, Any] = json.loads(text)
    event = body.pop("event")
    not_before = event.pop("not_before")
    resources = tuple(event.pop("resources"))
    missing, since = body.pop("missing_since"), body.pop("since", None)
    past = tuple(_past(one) for one in body.pop("past", ()))
    return Tracked(
        event=ScheduledEvent(not_before=moment(not_before), resources=resources, **event),
        missing_since=moment(missing),
        since=moment(since),
        past=past,
        **body,
    )


def _past(body: dict[str, Any]) -> PastState:
    since, not_before = datetime.fromisoformat(body.pop("since")), moment(body.pop("not_before"))
    resources = tuple(body.pop("resources"))
    return PastState(since=since, not_before=not_before, resources=resources, **body)


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
