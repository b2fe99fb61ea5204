"""What goes over the wire: documents as each api-version writes them, approvals, errors."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from bridge.core.model import Document, ScheduledEvent

TYPES_SINCE = {"Preempt": "2017-11-01", "Terminate": "2019-01-01"}
FIELDS_SINCE = {
    "Description": "2019-04-01",
    "EventSource": "2019-08-01",
    "DurationInSeconds": "2020-07-01",
}
UNDERSCORED = "2017-03-01"


@dataclass(frozen=True, slots=True)
class WireResponse:
    """One HTTP answer; `missing` bytes are promised and not sent, `reset` sends none at all."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    missing: int = 0
    reset: bool = False


def as_json(payload: object, *, status: int = 200) -> WireResponse:
    return WireResponse(status, json.dumps(payload).encode())


def error(status: int, message: str, **more: Any) -> WireResponse:
    return as_json({"error": message, **more}, status=status)


def http_date(moment: datetime) -> str:
    """RFC 1123 in GMT."""
    return format_datetime(moment.astimezone(UTC), usegmt=True)


def write_document(document: Document, api_version: str) -> dict[str, Any]:
    """The document as that api-version shows it: older ones know fewer types and fields."""
    return {
        "DocumentIncarnation": document.incarnation,
        "Events": [
            _write_event(event, api_version)
            for event in document.events
            if TYPES_SINCE.get(event.event_type, "") <= api_version
        ],
    }


def _write_event(event: ScheduledEvent, api_version: str) -> dict[str, Any]:
    prefix = "_" if api_version == UNDERSCORED else ""
    written = {
        "EventId": event.event_id,
        "EventType": event.event_type,
        "ResourceType": event.resource_type,
        "Resources": [prefix + name for name in event.resources],
        "EventStatus": event.status,
        "NotBefore": http_date(event.not_before) if event.not_before else "",
        "Description": event.description,
        "EventSource": event.event_source,
        "DurationInSeconds": event.duration,
        **event.extra,
    }
    return {k: v for k, v in written.items() if FIELDS_SINCE.get(k, "") <= api_version}


def read_start_requests(body: bytes) -> tuple[list[str], object]:
    """The EventIds of an approval and its DocumentIncarnation, or ValueError with what is wrong."""
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("the body is not JSON") from None
    requests = payload.get("StartRequests") if isinstance(payload, dict) else None
    if not isinstance(requests, list) or not requests:
        raise ValueError("StartRequests is not a list with at least one entry")
    return [_event_id(item) for item in requests], payload.get("DocumentIncarnation")


def _event_id(request: object) -> str:
    event_id = request.get("EventId") if isinstance(request, dict) else None
    if not isinstance(event_id, str) or not event_id:
        raise ValueError("an entry of StartRequests has no EventId")
    return event_id
