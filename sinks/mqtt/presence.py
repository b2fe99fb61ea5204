"""Whether this bridge is there, retained on a topic of its own: birth, end, and last will."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from bridge.plugins import Place, Unavailable
from sinks.mqtt.messages import Message
from sinks.mqtt.settings import MqttSettings

_PROPERTIES = {"ContentType": "application/json", "PayloadFormatIndicator": 1}


@dataclass(frozen=True)
class Presence:
    """The messages of one connection."""

    topic: str
    qos: int
    who: dict[str, Any]

    @classmethod
    def of(cls, settings: MqttSettings, place: Place, client_id: str) -> Self | None:
        """None when it is not wanted, or the VM has no name yet: the news itself matters more."""
        if settings.birth_topic is None:
            return None
        try:
            topic = place.fill(settings.birth_topic)
        except Unavailable:
            return None
        names = {"observer": place.names.get("observer"), "vmId": place.names.get("vm_id")}
        return cls(topic, settings.qos, {**names, "client": client_id})

    def online(self, now: datetime | None = None) -> Message:
        return self._message("online", since=_written(now))

    def offline(self, now: datetime | None = None) -> Message:
        return self._message("offline", since=_written(now), reason="stopped")

    def will(self) -> Message:
        """What the server says for us, it does not know when."""
        return self._message("offline", since=None, reason="lost")

    def _message(self, status: str, **more: Any) -> Message:
        body = json.dumps({"status": status, **self.who, **more}).encode()
        return Message(self.topic, body, self.qos, retain=True, properties=_PROPERTIES)


def _written(now: datetime | None) -> str:
    moment = now or datetime.now(UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
