"""Which topic a CloudEvent goes to: a template over names that nobody outside can choose."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from bridge.plugins import CloudEvent, Place

EVENT_TYPES = ("freeze", "reboot", "redeploy", "preempt", "terminate")
OTHER = "other"
"""What `{event_type}` is for all else: types that Azure may invent, and news of the bridge."""
_LONGEST = 249
_LEGAL = re.compile(r"[A-Za-z0-9._-]+")
_ILLEGAL = re.compile(r"[^A-Za-z0-9._-]")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


def validate_topic(template: str) -> str:
    """Return *template*, or raise ValueError when no legal topic can come of it."""
    Place.validate(template, "event_type")
    fixed = _PLACEHOLDER.sub("", template)
    if not template or (fixed and not _LEGAL.fullmatch(fixed)):
        raise ValueError(f"{template!r} is not a topic; allowed are A-Z a-z 0-9 . _ -")
    if template in {".", ".."} or len(fixed) > _LONGEST:
        raise ValueError(f"a topic has 1 to {_LONGEST} characters and is neither . nor ..")
    return template


@dataclass(frozen=True, slots=True)
class Topics:
    """A template filled in: one topic for each event type, often the same for all."""

    by_type: Mapping[str, str]
    only: str | None = None
    """Set when it is the same for all."""

    @classmethod
    def fill(cls, template: str, place: Place) -> Self:
        """Raises `Unavailable` while a name is not known yet."""
        by_type = {kind: _fill(template, place, kind) for kind in (*EVENT_TYPES, OTHER)}
        return cls(by_type, by_type[OTHER] if len(set(by_type.values())) == 1 else None)

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(self.by_type.values()))

    def of(self, cloudevent: CloudEvent) -> str:
        return self.only or self.by_type[_event_type(cloudevent.data)]


def _event_type(data: Mapping[str, object]) -> str:
    kind = str(data.get("eventType")).lower()
    return kind if kind in EVENT_TYPES else OTHER


def _fill(template: str, place: Place, kind: str) -> str:
    topic = _ILLEGAL.sub("_", place.fill(template, event_type=kind))[:_LONGEST]
    return topic if topic.strip(".") else topic.replace(".", "_")
