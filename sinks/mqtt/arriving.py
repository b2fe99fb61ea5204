"""An MQTT message as the reader of approvals wants it: a body and headers. Pure."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

_EVENT_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_STRUCTURED = "application/cloudevents"
_SIGNING = "webhook-"

Headers = list[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a message says; the properties are those of MQTT 5."""

    payload: bytes
    content_type: str | None = None
    user: Sequence[tuple[str, str]] = ()
    correlation: bytes | None = None

    @property
    def is_binary(self) -> bool:
        """Whether its user properties are the attributes of a CloudEvent, and all of them."""
        structured = (self.content_type or "").strip().lower().startswith(_STRUCTURED)
        return not structured and any(name.lower() == "specversion" for name, _ in self.user)


def headers_of(arrival: Arrival) -> Headers:
    """In the words of `bridge`'s reader; what stands twice goes on standing twice.

    MQTT's binding gives attributes no prefix, so any user property could be one: they are
    attributes only where one of them says so.
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
    """The payload; an empty one that answers our CloudEvent approves, unless it must be signed.

    The EventId is the Correlation Data of what the sink publishes, so any request-response
    library of MQTT 5 sends it back by itself.
    """
    if arrival.payload or signed or arrival.correlation is None or arrival.is_binary:
        return arrival.payload
    event_id = arrival.correlation.decode("ascii", "replace")
    if not _EVENT_ID.fullmatch(event_id):
        return arrival.payload
    return json.dumps({"eventId": event_id}).encode()
