"""One CloudEvent as the journal keeps it and sinks get it: JSON, and what routing needs of it."""

import json
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """A CloudEvent in the structured JSON format, `data` as an object.

    `key` is the `partitionkey`: order is kept among CloudEvents that share it.
    """

    id: str
    type: str
    key: str
    body: bytes

    @classmethod
    def decode(cls, body: bytes) -> "CloudEvent":
        """Read back what we wrote ourselves; never use it on foreign input."""
        envelope = json.loads(body)
        return cls(envelope["id"], envelope["type"], envelope["partitionkey"], body)

    @property
    def envelope(self) -> dict[str, Any]:
        """Attributes and data as one object, as in `body`; a fresh one at each call."""
        decoded: dict[str, Any] = json.loads(self.body)
        return decoded

    @property
    def attributes(self) -> dict[str, Any]:
        """All context attributes and extensions, without the data."""
        envelope = self.envelope
        del envelope["data"]
        return envelope

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = self.envelope["data"]
        return data


LONGEST = 32
"""What syslog has room for as MSGID, in printable ASCII."""

_KIND = re.compile(r"(?:azure\.scheduledevents\.)?(.*?)(?:\.v[0-9]+)?")
_TRANSITIONS = frozenset({"scheduled", "updated", "started", "completed", "canceled"})
_UNFIT = re.compile(r"[^a-z0-9-]")


def kind_of(cloudevent: CloudEvent) -> str:
    """What stands between prefix and version in its type: `started`, `approval.granted`."""
    found = _KIND.fullmatch(cloudevent.type)
    return found[1] if found else cloudevent.type


def class_id(cloudevent: CloudEvent) -> str:
    """`azse.reboot.started` for a transition, else `azse.` and its kind: `azse.source.degraded`."""
    kind = kind_of(cloudevent)
    if kind not in _TRANSITIONS:
        return f"azse.{kind}"[:LONGEST]
    room = LONGEST - len(f"azse..{kind}")
    event_type = _UNFIT.sub("", str(cloudevent.data.get("eventType")).lower())
    return f"azse.{event_type[:room] or 'other'}.{kind}"
