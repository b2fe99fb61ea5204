"""The parts of sentences: what Azure does, to which VMs, when, and who reports it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sinks.formats._human import clean, list_names, read_moment, say_due, say_span

LONGEST_WORD = 100
LONGEST_SPAN = 10**8
_DOES = {
    "freeze": "pause {}",
    "reboot": "reboot {}",
    "redeploy": "move {} to other hardware, which empties temporary disks",
    "preempt": "take away {}, evicted from Spot capacity",
    "terminate": "delete {}",
}
_OVER = frozenset({"started", "completed", "canceled"})


@dataclass(frozen=True, slots=True)
class Story:
    """The contents of a CloudEvent, as phrases."""

    kind: str
    now: datetime
    data: Mapping[str, Any]
    attributes: Mapping[str, Any]

    @property
    def vms(self) -> str:
        names = self.data.get("resources") or []
        return list_names(names, self.data.get("resourcesTruncated") or 0) or "no VM by name"

    @property
    def what(self) -> str:
        """`Reboot of web-1`; an approval may be for an event that this bridge does not know."""
        if not self.data.get("eventType"):
            return f"scheduled event {self.word('eventId')}"
        return f"{self.word('eventType')} of {self.vms}"

    @property
    def does(self) -> str:
        """`reboot web-1`, and for a new event type `carry out Defragment on web-1`."""
        known = _DOES.get(str(self.data.get("eventType")).casefold())
        if known is None:
            return f"carry out {self.word('eventType')} on {self.vms}"
        return known.format(self.vms)

    @property
    def due(self) -> str | None:
        moment = read_moment(self.data.get("notBefore"))
        return say_due(moment, self.now) if moment else None

    @property
    def ahead(self) -> str | None:
        """`In 15 min`, while it is ahead."""
        moment = read_moment(self.data.get("notBefore"))
        left = (moment - self.now).total_seconds() if moment else -1
        return f"In {say_span(left)}" if left >= 0 else None

    @property
    def observer(self) -> str:
        return clean(self.attributes.get("observer"), LONGEST_WORD)

    def word(self, name: str, instead: str = "unknown") -> str:
        value = self.data.get(name)
        return instead if value in (None, "") else clean(value, LONGEST_WORD) or instead

    def votes(self, name: str) -> str:
        return list_names((self.data.get("votes") or {}).get(name) or [])


def list_facts(story: Story) -> tuple[tuple[str, str], ...]:
    """The known facts, each with its name."""
    data = story.data
    facts = (
        ("Event", clean(data.get("eventId") or "", 128)),
        ("Type", story.word("eventType", "")),
        ("VMs", story.vms if data.get("resources") else ""),
        ("Not before", "" if story.kind in _OVER else story.due or ""),
        ("Approve by", _approve_by(story)),
        ("Cause", story.word("eventSource", "")),
        ("Interruption", _interruption(data.get("durationInSeconds"))),
        ("Seen by", story.observer),
    )
    return tuple((name, value) for name, value in facts if value)


def _approve_by(story: Story) -> str:
    moment = read_moment(story.data.get("approveBy"))
    return say_due(moment, story.now) if moment else ""


def _interruption(seconds: object) -> str:
    if not isinstance(seconds, int | float):
        return ""
    if not 0 <= seconds < LONGEST_SPAN:
        return "of unknown length"
    return f"about {say_span(seconds)}" if seconds else "none expected"
