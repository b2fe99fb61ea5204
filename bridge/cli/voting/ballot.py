"""Which scheduled events a vote is about, and the messages that say so: pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from bridge.policy.message import MOST_EVENTS
from bridge.policy.votes import Decision

PendingEvent = Mapping[str, Any]
"""A scheduled event, as the API gives it."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants to say, whichever scheduled events it is about."""

    decision: Decision = "approve"
    resource: str | None = None
    whole: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Ballot:
    """One message: the same vote on all of these."""

    event_ids: tuple[str, ...]
    wish: Wish
    resource: str | None = None

    def body(self, message_id: str) -> dict[str, Any]:
        """As it is sent. Azure's own body is the one that names several."""
        if len(self.event_ids) == 1:
            about: dict[str, Any] = {"eventId": self.event_ids[0]}
        else:
            about = {"StartRequests": [{"EventId": one} for one in self.event_ids]}
        said = {
            "decision": self.wish.decision,
            "resource": self.resource,
            "reason": self.wish.reason,
            "id": message_id,
        }
        return about | {name: value for name, value in said.items() if value is not None}


def open_here(events: Iterable[PendingEvent], resource: str | None = None) -> list[PendingEvent]:
    """What can still be approved here, and names *resource* if there is one."""
    return [
        event
        for event in events
        if event["pending"]
        and event["status"] == "Scheduled"
        and event["affected"] is not False
        and (resource is None or _spelling(event, resource))
    ]


def find(
    given: Sequence[str], events: Sequence[PendingEvent]
) -> tuple[list[PendingEvent], list[str]]:
    """Those that are meant, and the ids that mean none; case does not matter.

    A strange EventId may be given by the hash that stands for it wherever it is published.
    """
    known = {event["href"].rpartition("/")[2].casefold(): event for event in events}
    known |= {event["eventId"].casefold(): event for event in events}
    meant = [known[one.casefold()] for one in given if one.casefold() in known]
    found = {event["eventId"]: event for event in meant}
    return list(found.values()), [one for one in given if one.casefold() not in known]


def nearest(given: str, events: Iterable[PendingEvent]) -> str | None:
    """The pending one that a mistyped id most looks like."""
    pending = {event["eventId"].casefold(): event["eventId"] for event in events}
    close = get_close_matches(given.casefold(), pending, n=1)
    return pending[close[0]] if close else None


def ballots(events: Sequence[PendingEvent], wish: Wish, vm: str | None) -> Iterator[Ballot]:
    """As few messages as there can be: one for each resource that is voted for."""
    groups: dict[str | None, list[str]] = {}
    for event in events:
        groups.setdefault(spoken_for(event, wish, vm), []).append(event["eventId"])
    for resource, ids in groups.items():
        yield from unseen(ids, wish, resource)


def unseen(ids: Sequence[str], wish: Wish, resource: str | None) -> Iterator[Ballot]:
    """The same for events of which nothing but the id is known."""
    for start in range(0, len(ids), MOST_EVENTS):
        yield Ballot(tuple(ids[start : start + MOST_EVENTS]), wish, resource)


def spoken_for(event: PendingEvent, wish: Wish, vm: str | None) -> str | None:
    """For which VM: the one that is named, else this one; None is for all of them."""
    if wish.resource is not None:
        return wish.resource
    if wish.whole or vm is None or len(event["resources"]) < 2:
        return None
    return _spelling(event, vm)


def _spelling(event: PendingEvent, vm: str) -> str | None:
    """The VM's name as the event has it; None when it has not."""
    names = (name for name in event["resources"] if name.casefold() == vm.casefold())
    return next(names, None)
