"""One CloudEvent as the journal stores it and sinks get it: JSON, and the fields for routing."""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

PREFIX = "azure.scheduledevents."
TransitionKind = Literal["scheduled", "updated", "started", "completed", "canceled"]
TRANSITIONS: frozenset[str] = frozenset(get_args(TransitionKind))
"""What can happen to a scheduled event."""
LONGEST = 32
"""The longest MSGID in syslog, in printable ASCII."""
_DATA = b', "data": '
"""Where the data begins in a body that we wrote: inside of text, quotes are escaped."""
_TYPE = re.compile(r"(?:azure\.scheduledevents\.)?(.*?)(?:\.v[0-9]+)?")
_UNFIT = re.compile(r"[^a-z0-9-]")
_UNFIT_ACTION = re.compile(r"[^a-z0-9.-]")


def short_type(type_: str) -> str:
    """The part between prefix and version: `started`, `approval.granted`."""
    found = _TYPE.fullmatch(type_)
    return found[1] if found else type_


def full_type(kind: str) -> str:
    """The full CloudEvent type, from its short form."""
    return f"{PREFIX}{kind}.v1"


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """A CloudEvent in the structured JSON format, `data` as an object.

    `key` is the `partitionkey`: order is kept among CloudEvents that share it. `present` is for
    sinks that keep the present state of scheduled events: see `SinkSettings.keeps_state`.
    """

    id: str
    type: str
    key: str
    body: bytes
    present: "tuple[PresentState, ...]" = field(default=(), compare=False, repr=False)

    @classmethod
    def decode(cls, body: bytes) -> "CloudEvent":
        """Read back what we wrote ourselves; never use it for foreign input."""
        envelope = json.loads(body)
        return cls(envelope["id"], envelope["type"], envelope["partitionkey"], body)

    @property
    def kind(self) -> str:
        """Its type without prefix and version."""
        return short_type(self.type)

    @property
    def is_transition(self) -> bool:
        """Whether it is about a change of a scheduled event."""
        return self.kind in TRANSITIONS

    @property
    def envelope(self) -> dict[str, Any]:
        """Attributes and data as one object, as in `body`; a new one for each call."""
        decoded: dict[str, Any] = json.loads(self.body)
        return decoded

    @property
    def parts(self) -> tuple[dict[str, Any], bytes]:
        """All attributes, and the data as JSON: what binary modes send.

        We write the data last and in ASCII, so that it is not decoded to be encoded again.
        """
        end = self.body.find(_DATA)
        if end > 0 and self.body.isascii():
            return json.loads(self.body[:end] + b"}"), self.body[end + len(_DATA) : -1]
        envelope = self.envelope
        data = envelope.pop("data")
        return envelope, json.dumps(data).encode()

    @property
    def attributes(self) -> dict[str, Any]:
        """All context attributes and extensions, without the data."""
        return self.parts[0]

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = self.envelope["data"]
        return data


class PresentState(NamedTuple):
    """The latest CloudEvent about a pending scheduled event; None if it is over, or out of scope.

    `subject` is its EventId, as in the attribute.
    """

    subject: str
    latest: CloudEvent | None


def kind_of(cloudevent: CloudEvent) -> str:
    """The part of its type between prefix and version."""
    return cloudevent.kind


def class_id(cloudevent: CloudEvent) -> str:
    """`azse.reboot.started` for a transition, `azse.audit.token.refused` for an audit.

    For all others `azse.` and its kind: `azse.source.degraded`.
    """
    kind = cloudevent.kind
    if kind == "bridge.audited":
        action = _UNFIT_ACTION.sub("", str(cloudevent.data.get("action")).lower())
        return f"azse.audit.{action or 'other'}"[:LONGEST]
    if not cloudevent.is_transition:
        return f"azse.{kind}"[:LONGEST]
    room = LONGEST - len(f"azse..{kind}")
    event_type = _UNFIT.sub("", str(cloudevent.data.get("eventType")).lower())
    return f"azse.{event_type[:room] or 'other'}.{kind}"
