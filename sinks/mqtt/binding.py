"""CloudEvents as MQTT messages and back: the CloudEvents MQTT protocol binding; pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Self

from bridge.plugins import CloudEvent, Format, Place, Unavailable, kind_of, marks_cloudevent
from sinks.mqtt.settings import MqttSettings

STRUCTURED = "application/cloudevents+json; charset=utf-8"
HOUR = 3600
RESUMED = 10.0
"""How long after connecting messages count as given before, in seconds."""
_BEHIND = 1.0
_ANNOUNCED = frozenset({"scheduled", "updated"})
_PENDING = _ANNOUNCED | {"started"}
_ENDED = frozenset({"completed", "canceled"})
_OF_PRESENCE = {"ContentType": "application/json", "PayloadFormatIndicator": 1}
_CORRELATION = re.compile(r"([A-Za-z0-9._:-]{1,128})(?:/([0-9a-f]{64}))?")
_ANY_STRUCTURED = "application/cloudevents"
_SIGNING = "webhook-"
_CONTENT_TYPE = "content-type"
_OURS = "azure.scheduledevents."

Headers = list[tuple[str, bytes]]


@dataclass(frozen=True)
class MqttMessage:
    """`properties` are those of MQTT 5, under paho's names; MQTT 3.1.1 has none."""

    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Binding:
    """How this sink encodes CloudEvents, and where it publishes them."""

    settings: MqttSettings
    place: Place
    format: Format | None = None
    response_topic: str | None = None

    def topic_of(self, subject: str) -> str:
        """Raises `Unavailable` while a placeholder has no value yet."""
        return self.place.fill(self.settings.topic, subject=subject)

    def messages(self, cloudevent: CloudEvent, now: float) -> list[MqttMessage]:
        """The CloudEvent, and what clears its retained state if the scheduled event has ended.

        Raises `Rejected` when the format cannot express it.
        """
        kind = kind_of(cloudevent)
        keep = self.settings.retain_state
        topic = self.topic_of(cloudevent.key)
        payload, properties = self._content(cloudevent)
        if self._has_extras and kind in _PENDING:
            properties |= self._extras(cloudevent.data, kind, now)
        qos = self.settings.qos
        said = MqttMessage(topic, payload, qos, keep and kind in _PENDING, properties)
        if keep and kind in _ENDED:
            return [said, MqttMessage(topic, b"", qos, retain=True)]
        return [said]

    def _content(self, cloudevent: CloudEvent) -> tuple[bytes, dict[str, Any]]:
        if self.settings.mode == "binary":
            return _binary(cloudevent, self.settings.attribute_prefix)
        if self.format is None:
            return cloudevent.body, _described(STRUCTURED)
        return self.format.encode(cloudevent), _described(self.format.content_type)

    @property
    def _has_extras(self) -> bool:
        """Whether the data is needed: most settings do not need it."""
        settings = self.settings
        wanted = settings.expiry or settings.retain_state or self.response_topic is not None
        return wanted and settings.version == "5"

    def _extras(self, data: dict[str, Any], kind: str, now: float) -> dict[str, Any]:
        extras: dict[str, Any] = {}
        lifetime = self._lifetime(data, kind, now)
        if lifetime is not None:
            extras["MessageExpiryInterval"] = lifetime
        if self.response_topic is not None and data.get("approvable"):
            extras["ResponseTopic"] = self.response_topic
            extras["CorrelationData"] = _correlation(data)
        return extras

    def _lifetime(self, data: dict[str, Any], kind: str, now: float) -> int | None:
        """Seconds. State expires: a deleted VM may not be able to report its end."""
        if self.settings.retain_state and data.get("terminal"):
            return HOUR
        if not self.settings.expiry or kind not in _ANNOUNCED or not data.get("notBefore"):
            return None
        until = datetime.fromisoformat(data["notBefore"]).timestamp() + HOUR
        return max(1, round(until - now))


def _correlation(data: Mapping[str, Any]) -> bytes:
    """`EVENTID/STATE`: an answer that returns it says which state it is about."""
    parts = (data["eventId"], data.get("state"))
    return "/".join(str(part) for part in parts if part).encode()


def _binary(cloudevent: CloudEvent, prefix: str) -> tuple[bytes, dict[str, Any]]:
    """The Go SDK, which needs the prefix, looks for the content type among the user properties."""
    attributes, payload = cloudevent.parts
    content_type = attributes.pop("datacontenttype")
    named = [(f"{prefix}{name}", str(value)) for name, value in attributes.items()]
    if prefix:
        named.append(("Content-Type", content_type))
    return payload, {**_described(content_type), "UserProperty": named}


def _described(content_type: str) -> dict[str, Any]:
    text = "json" in content_type or content_type.startswith("text/")
    return {"ContentType": content_type, "PayloadFormatIndicator": int(text)}


@dataclass(frozen=True)
class Presence:
    """The birth and will messages of one connection."""

    topic: str
    qos: int
    who: dict[str, Any]

    @classmethod
    def of(cls, settings: MqttSettings, place: Place, client_id: str) -> Self | None:
        """None when it is off, or while the VM has no name: delivery does not wait for that."""
        if settings.birth_topic is None:
            return None
        try:
            topic = place.fill(settings.birth_topic)
        except Unavailable:
            return None
        names = {"observer": place.names.get("observer"), "vmId": place.names.get("vm_id")}
        return cls(topic, settings.qos, {**names, "client": client_id})

    def online(self, now: datetime | None = None) -> MqttMessage:
        return self._message("online", since=_written(now))

    def offline(self, now: datetime | None = None) -> MqttMessage:
        return self._message("offline", since=_written(now), reason="stopped")

    def will(self) -> MqttMessage:
        """The server publishes the will, and the time is not known in advance."""
        return self._message("offline", since=None, reason="lost")

    def _message(self, status: str, **more: Any) -> MqttMessage:
        body = json.dumps({"status": status, **self.who, **more}).encode()
        return MqttMessage(self.topic, body, self.qos, retain=True, properties=_OF_PRESENCE)


def _written(now: datetime | None) -> str:
    moment = now or datetime.now(UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Arrival:
    """A received message; the properties are those of MQTT 5."""

    payload: bytes
    content_type: str | None = None
    user: Sequence[tuple[str, str]] = ()
    correlation: bytes | None = None

    @property
    def is_structured(self) -> bool:
        return (self.content_type or "").strip().lower().startswith(_ANY_STRUCTURED)

    @property
    def is_binary(self) -> bool:
        """Whether its user properties show that it is a CloudEvent."""
        return not self.is_structured and any(
            marks_cloudevent(name) or (name.lower() == "type" and value.lower().startswith(_OURS))
            for name, value in self.user
        )

    @property
    def is_tombstone(self) -> bool:
        """Whether it says nothing: it was published to clear a retained message."""
        return not (self.payload or self.correlation is not None or self.is_binary)


def headers_of(arrival: Arrival) -> Headers:
    """The headers as the bridge reads them; duplicates stay duplicates.

    MQTT's binding gives attributes no prefix, and the Go SDK gives them one. The bridge decides
    whether they are attributes. In structured mode they are not, only signatures count.
    """
    found: Headers = []
    if arrival.content_type is not None:
        found.append((_CONTENT_TYPE, arrival.content_type.encode()))
    for spelled, value in arrival.user:
        name = spelled.lower()
        if name == _CONTENT_TYPE:
            # Not MQTT's own: it counts only as a sign of a CloudEvent that has no other.
            sign = value.strip().lower().startswith(_ANY_STRUCTURED)
            wanted = sign and arrival.content_type is None and not arrival.is_binary
        else:
            wanted = not arrival.is_structured or name.startswith(_SIGNING)
        if wanted:
            found.append((name, value.encode()))
    return found


def body_of(arrival: Arrival, *, signed: bool) -> bytes:
    """The payload, completed from the Correlation Data that an answer to our CloudEvent returns.

    An empty answer approves. Any request-response library of MQTT 5 returns Correlation Data
    automatically. A signature does not cover it, so it completes nothing that is signed.
    """
    named = _CORRELATION.fullmatch((arrival.correlation or b"").decode("ascii", "replace"))
    if named is None or signed or arrival.is_binary:
        return arrival.payload
    event_id, state = named.groups()
    if not arrival.payload:
        return json.dumps({"eventId": event_id} | ({"seen": state} if state else {})).encode()
    if state is None or any(name.lower().startswith(_SIGNING) for name, _ in arrival.user):
        return arrival.payload
    return _with_seen(arrival.payload, event_id, state)


def _with_seen(payload: bytes, event_id: str, state: str) -> bytes:
    """Plain JSON about that event, with what its sender saw; the rest stays as it was written."""
    try:
        text = payload.decode().rstrip()
        said = json.loads(text)
    except (ValueError, RecursionError):
        return payload
    if not isinstance(said, dict) or any(name.casefold() == "seen" for name in said):
        return payload
    if str(said.get("eventId")).upper() != event_id.upper():
        return payload
    return f'{text[:-1]}, "seen": "{state}"}}'.encode()


class LastHeard(NamedTuple):
    """When a server was last heard, by the monotonic clock and by the wall clock."""

    monotonic: float
    wall: datetime

    def moment(self, monotonic: float, wall: datetime) -> datetime:
        """That moment by the present wall clock, which may have been set since.

        The monotonic clock may stop while a machine is suspended, so the earlier one counts.
        """
        return min(self.wall, wall - timedelta(seconds=monotonic - self.monotonic))


def away_since(
    known: LastHeard | None,
    noted: datetime | None,
    *,
    session_present: bool,
    at: tuple[float, datetime],
) -> datetime | None:
    """Since when the server may have kept messages for us; None if it cannot have kept any.

    After a restart, the journal has *noted* when the source was last connected. Without that, what
    the session has may be of any age.
    """
    if known is not None:
        return known.moment(*at)
    if noted is not None:
        return noted
    return datetime.fromtimestamp(0, UTC) if session_present else None


class Backlog:
    """What a server kept while we were away: nobody says when it was published.

    So all that arrives soon after connecting was given when the connection was lost, and so was
    what waits behind it.
    """

    def __init__(self, since: datetime | None, connected: float) -> None:
        self._since, self._until = since, connected + RESUMED

    def given(self, arrived: float, now: float, *, more: bool) -> datetime | None:
        """When to regard a message as given; None for its arrival. *more* wait behind it."""
        if self._since is None or arrived > self._until:
            return None
        if more:
            self._until = max(self._until, now + _BEHIND)
        return self._since
