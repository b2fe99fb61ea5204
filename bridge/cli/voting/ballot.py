"""Which scheduled events a vote is about, and the messages that carry it; pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bridge.cli.ids import matches
from bridge.cli.parser import nearest
from bridge.policy.message import MOST_EVENTS
from bridge.policy.votes import Decision

PendingEvent = Mapping[str, Any]
"""A scheduled event, as the API returns it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The vote that the user chose, before the scheduled events are known."""

    decision: Decision = "approve"
    resource: str | None = None
    whole: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Ballot:
    """One message: the same vote on several scheduled events.

    `seen` is the state in which they were shown to the user, if an approval is about it.
    """

    event_ids: tuple[str, ...]
    choice: Choice
    resource: str | None = None
    seen: str | None = None

    def body(self, message_id: str) -> dict[str, Any]:
        """The body to send. Several events use the format of Azure's own StartRequests."""
        if len(self.event_ids) == 1:
            about: dict[str, Any] = {"eventId": self.event_ids[0]}
        else:
            about = {"StartRequests": [{"EventId": one} for one in self.event_ids]}
        said = {
            "decision": self.choice.decision,
            "resource": self.resource,
            "reason": self.choice.reason,
            "seen": self.seen,
            "id": message_id,
        }
        return about | {name: value for name, value in said.items() if value is not None}


def open_here(events: Iterable[PendingEvent], resource: str | None = None) -> list[PendingEvent]:
    """Events that can still be approved here, and that name *resource* if it is given."""
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
) -> tuple[list[PendingEvent], dict[str, list[PendingEvent]]]:
    """The events with these ids, or with ids that begin like this.

    Also the ids that do not name one event, each with the events that it may mean.
    """
    meant = {one: matches(one, events) for one in given}
    found = {each[0]["eventId"]: each[0] for each in meant.values() if len(each) == 1}
    return list(found.values()), {one: each for one, each in meant.items() if len(each) != 1}


def nearest_id(given: str, events: Iterable[PendingEvent]) -> str | None:
    """The pending event whose id is closest to a mistyped one."""
    return nearest(given, [event["eventId"] for event in events])


def ballots(events: Sequence[PendingEvent], choice: Choice, vm: str | None) -> Iterator[Ballot]:
    """As few messages as possible: one for each resource, and for each state to approve."""
    groups: dict[tuple[str | None, str | None], list[str]] = {}
    for event in events:
        seen = event.get("state") if choice.decision == "approve" else None
        groups.setdefault((spoken_for(event, choice, vm), seen), []).append(event["eventId"])
    for (resource, seen), ids in groups.items():
        yield from unseen(ids, choice, resource, seen)


def unseen(
    ids: Sequence[str], choice: Choice, resource: str | None, seen: str | None = None
) -> Iterator[Ballot]:
    """The same for events of which only the id is known."""
    for start in range(0, len(ids), MOST_EVENTS):
        yield Ballot(tuple(ids[start : start + MOST_EVENTS]), choice, resource, seen)


def spoken_for(event: PendingEvent, choice: Choice, vm: str | None) -> str | None:
    """The VM to vote for: the named one, else this one; None for all VMs."""
    if choice.resource is not None:
        return choice.resource
    if choice.whole or vm is None or len(event["resources"]) < 2:
        return None
    return _spelling(event, vm)


def _spelling(event: PendingEvent, vm: str) -> str | None:
    """The VM's name as the event spells it; None if the event does not name it."""
    names = (name for name in event["resources"] if name.casefold() == vm.casefold())
    return next(names, None)
