"""The metadata service's answers as values: documents, scheduled events, and the VM itself."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, NamedTuple

SCHEDULED = "Scheduled"
STARTED = "Started"

_FIELDS = frozenset(
    {
        "EventId",
        "EventType",
        "EventStatus",
        "ResourceType",
        "Resources",
        "NotBefore",
        "Description",
        "EventSource",
        "DurationInSeconds",
    }
)
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_WEEKDAY = re.compile(r"^[A-Za-z]{3,9},\s*")
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
_DEEPEST = 64


class MalformedDocument(ValueError):
    """The answer is JSON, but not in the form that this service uses."""


@dataclass(frozen=True, slots=True)
class ScheduledEvent:
    """An event as Azure announces it. Fields that the api-version lacks are None."""

    event_id: str
    event_type: str
    status: str
    resources: tuple[str, ...] = ()
    not_before: datetime | None = None
    resource_type: str | None = None
    description: str | None = None
    event_source: str | None = None
    duration: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The EventId as we compare and write it; `event_id` keeps Azure's spelling."""
        return self.event_id.upper()

    def names(self, vm_name: str) -> bool:
        return vm_name.casefold() in (name.casefold() for name in self.resources)


class Document(NamedTuple):
    """One answer of the metadata service. The incarnation is kept as received, even as text."""

    incarnation: int | str | None
    events: tuple[ScheduledEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class Instance:
    """The VM that we run on, as described by instance metadata."""

    name: str | None = None
    vm_id: str | None = None
    subscription: str | None = None
    resource_group: str | None = None
    resource_id: str | None = None
    location: str | None = None
    zone: str | None = None
    scale_set: str | None = None
    hostname: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


def parse_document(payload: object, *, api_version: str) -> Document:
    """Read a decoded JSON answer, or raise `MalformedDocument` with the reason."""
    if not isinstance(payload, dict) or not isinstance(payload.get("Events"), list):
        raise MalformedDocument("no Events array")
    incarnation = writable(payload.get("DocumentIncarnation"))
    if isinstance(incarnation, bool) or not isinstance(incarnation, int | str | None):
        raise MalformedDocument("DocumentIncarnation is neither number nor text")
    underscored = api_version == "2017-03-01"
    events: dict[str, ScheduledEvent] = {}
    for item in payload["Events"]:
        event = _event(writable(item, depth=2), underscored=underscored)
        events.setdefault(event.key, event)
    return Document(incarnation, tuple(events.values()))


def writable(value: Any, depth: int = 0) -> Any:
    """The same value without anything that JSON in UTF-8 cannot represent for every reader.

    Python reads halves of surrogate pairs, NaN and Infinity from JSON; other readers refuse them.
    """
    if isinstance(value, str):
        return value if value.isascii() else _HALF_A_PAIR.sub("\ufffd", value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if not isinstance(value, dict | list):
        return value
    if depth >= _DEEPEST:
        return None
    if isinstance(value, list):
        return [writable(item, depth + 1) for item in value]
    return {
        name if name.isascii() else writable(name): item
        if item.__class__ is int or (item.__class__ is str and item.isascii())
        else writable(item, depth + 1)
        for name, item in value.items()
    }


def may_be_unwritable(text: str) -> bool:
    """Whether ASCII JSON without NaN may contain what `writable` removes; it may be wrong to doubt.

    Every half of a surrogate pair is an escape here, and deep nesting needs that many brackets.
    """
    return "\\ud" in text or text.count("{") + text.count("[") > _DEEPEST


def _event(item: object, *, underscored: bool) -> ScheduledEvent:
    if not isinstance(item, dict):
        raise MalformedDocument("an entry of Events is not an object")
    return ScheduledEvent(
        event_id=_required(item, "EventId"),
        event_type=_required(item, "EventType"),
        status=_required(item, "EventStatus"),
        resources=_resources(item.get("Resources"), underscored=underscored),
        not_before=parse_time(_text(item, "NotBefore")),
        resource_type=_text(item, "ResourceType"),
        description=_text(item, "Description"),
        event_source=_text(item, "EventSource"),
        duration=_number(item, "DurationInSeconds"),
        extra={name: value for name, value in item.items() if name not in _FIELDS},
    )


def _required(item: Mapping[str, Any], name: str) -> str:
    value = _text(item, name)
    if not value:
        raise MalformedDocument(f"an event has no {name}")
    return value


def _text(item: Mapping[str, Any], name: str) -> str | None:
    value = item.get(name)
    if value is not None and not isinstance(value, str):
        raise MalformedDocument(f"{name} is not text")
    return value


def _number(item: Mapping[str, Any], name: str) -> float | None:
    value = item.get(name)
    if isinstance(value, str):
        value = int(value) if _INTEGER.fullmatch(value) else value
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise MalformedDocument(f"{name} is not a number")
    return value


def _resources(value: object, *, underscored: bool) -> tuple[str, ...]:
    """Read the names; 2017-03-01 puts an underscore before them, which no VM name starts with."""
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise MalformedDocument("Resources is not a list of names")
    return tuple(name.removeprefix("_") for name in value) if underscored else tuple(value)


@lru_cache(maxsize=256)
def parse_time(text: str | None) -> datetime | None:
    """Read RFC 1123 or ISO 8601, in UTC; None when it is empty or absent.

    The weekday is ignored: Microsoft's own example has a wrong one.
    """
    if not text or not text.strip():
        return None
    text = text.strip()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(_WEEKDAY.sub("", text))
        except (ValueError, TypeError, IndexError, OverflowError):
            raise MalformedDocument(f"not a time: {text[:60]!r}") from None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise MalformedDocument(f"not a time: {text[:60]!r}") from None


def parse_instance(payload: object) -> Instance:
    """Read the answer of `/metadata/instance`; absent or invalid values are None."""
    payload = writable(payload)
    compute = payload.get("compute") if isinstance(payload, dict) else None
    if not isinstance(compute, dict):
        raise MalformedDocument("no compute object")

    def text(name: str) -> str | None:
        value = compute.get(name)
        return value if isinstance(value, str) and value else None

    profile = compute.get("osProfile")
    host = profile.get("computerName") if isinstance(profile, dict) else None
    return Instance(
        name=text("name"),
        vm_id=text("vmId"),
        subscription=text("subscriptionId"),
        resource_group=text("resourceGroupName"),
        resource_id=text("resourceId"),
        location=text("location"),
        zone=text("zone"),
        scale_set=text("vmScaleSetName"),
        hostname=host if isinstance(host, str) and host else None,
        tags=_tags(compute),
    )


def _tags(compute: Mapping[str, Any]) -> dict[str, str]:
    """Prefer `tagsList`: in the flat `tags` text a semicolon inside a value is ambiguous."""
    listed = compute.get("tagsList")
    if isinstance(listed, list):
        pairs = [(tag.get("name"), tag.get("value")) for tag in listed if isinstance(tag, dict)]
        return {k: v for k, v in pairs if isinstance(k, str) and isinstance(v, str)}
    flat = compute.get("tags")
    if not isinstance(flat, str):
        return {}
    split = (part.partition(":") for part in flat.split(";") if ":" in part)
    return {name: value for name, _, value in split}
