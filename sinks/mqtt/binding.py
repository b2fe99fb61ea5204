"""CloudEvents as MQTT messages and back: the CloudEvents MQTT protocol binding; pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

from cloudevents.core.formats.json import JSONFormat

from bridge.plugins import CloudEvent, Format, Place, Unavailable, kind_of
from sinks.mqtt.settings import MqttSettings

STRUCTURED = "application/cloudevents+json; charset=utf-8"
HOUR = 3600
_FORMAT = JSONFormat()
_ANNOUNCED = frozenset({"scheduled", "updated"})
_PENDING = _ANNOUNCED | {"started"}
_ENDED = frozenset({"completed", "canceled"})
_OF_PRESENCE = {"ContentType": "application/json", "PayloadFormatIndicator": 1}
_CORRELATION = re.compile(r"([A-Za-z0-9._:-]{1,128})(?:/([0-9a-f]{64}))?")
_ANY_STRUCTURED = "application/cloudevents"
_SIGNING = "webhook-"

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
            return _binary(cloudevent)
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


def _binary(cloudevent: CloudEvent) -> tuple[bytes, dict[str, Any]]:
    attributes = cloudevent.envelope
    content_type = attributes.pop("datacontenttype")
    payload = _FORMAT.write_data(attributes.pop("data"), content_type)
    named = [(name, str(value)) for name, value in attributes.items()]
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
    def is_binary(self) -> bool:
        """Whether its user properties are all attributes of a CloudEvent."""
        structured = (self.content_type or "").strip().lower().startswith(_ANY_STRUCTURED)
        return not structured and any(name.lower() == "specversion" for name, _ in self.user)


def headers_of(arrival: Arrival) -> Headers:
    """The headers as the bridge reads them; duplicates stay duplicates.

    MQTT's binding gives attributes no prefix, so any user property could be one. They are
    attributes only if one of them is `specversion`.
    """
    found: Headers = []
    binary = arrival.is_binary
    if arrival.content_type is not None:
        found.append(("content-type", arrival.content_type.encode()))
    for name, value in arrival.user:
        if name.lower().startswith(_SIGNING):
            found.append((name.lower(), value.encode()))
        elif binary:
            found.append((f"ce_{name.lower()}", value.encode()))
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
