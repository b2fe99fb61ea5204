"""Short ids: the beginning of an EventId stands for it, as long as no other id begins like that."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

SHORTEST = 6
"""The fewest characters that stand for an id."""
_SHOWN = 8


def shortened(ids: Iterable[str]) -> dict[str, str]:
    """Each id with the beginning to show: 8 characters, or more if another id has the same."""
    known = sorted(set(ids))
    return {one: one[: _length(one, [other for other in known if other != one])] for one in known}


def _length(one: str, others: Collection[str]) -> int:
    length = _SHOWN
    while length < len(one) and any(other.startswith(one[:length]) for other in others):
        length += 1
    return min(len(one), length)


def matches(given: str, events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The events that *given* stands for: one if it is clear, several if it is too short.

    It is an EventId, the hash under which an unusual one is published, or the beginning of either.
    Case does not matter.
    """
    text = given.casefold()
    named = [(_names(event), event) for event in events]
    exact = [event for names, event in named if text in names]
    if exact or len(text) < SHORTEST:
        return exact
    return [event for names, event in named if any(name.startswith(text) for name in names)]


def _names(event: Mapping[str, Any]) -> tuple[str, str]:
    return event["eventId"].casefold(), event["href"].rpartition("/")[2].casefold()


def ambiguous(given: str, found: Iterable[Mapping[str, Any]]) -> str:
    """Say that *given* is too short."""
    ids = [event["eventId"] for event in found]
    shown = ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")
    return f"{len(ids)} scheduled events begin with {given}: {shown}; give more of the id"
