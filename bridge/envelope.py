"""The envelope of our CloudEvents: attributes, the size limit, and the SDK that writes them."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bridge.cloudevent import CloudEvent
from bridge.ids import safe_id, safe_name
from bridge.observer import Observer

PREFIX = "azure.scheduledevents."
LIMIT = 65536
"""The size that every CloudEvents intermediary must forward."""

_BANDS = ((21, "FATAL"), (17, "ERROR"), (13, "WARN"), (9, "INFO"))


@dataclass(frozen=True, slots=True)
class Letter:
    """A CloudEvent before it is written: what varies from one to the next."""

    kind: str
    id: str
    time: datetime
    schema: str
    severity: int
    event_id: str | None
    data: dict[str, Any]


def write(letter: Letter, observer: Observer) -> CloudEvent:
    """Encode, leaving out the least useful until it is small enough for every transport."""
    result = _encode(letter, observer)
    for shorten in (_without_extra, _short_description, _fewer):
        if len(result.body) <= LIMIT:
            return result
        shorten(letter.data, len(result.body) - LIMIT)
        result = _encode(letter, observer)
    return result


def _without_extra(data: dict[str, Any], _: int) -> None:
    data.pop("extra", None)


def _short_description(data: dict[str, Any], excess: int) -> None:
    """Cut by characters; one character is at most twelve bytes of JSON (a pair of escapes)."""
    description = data.get("description")
    if description:
        data["description"] = description[: max(0, len(description) - excess)][:1024]


def _fewer(data: dict[str, Any], _: int) -> None:
    """Keep as many resources (or pending events) as fit, and say how many were left out."""
    data.get("changes", {}).pop("resources", None)
    for name in ("resources", "pending"):
        if name in data:
            kept = _fitting(data[name], LIMIT // 2)
            data[f"{name}Truncated"] = len(data[name]) - len(kept)
            data[name] = kept


def _fitting(items: list[Any], room: int) -> list[Any]:
    kept = []
    for item in items:
        room -= len(json.dumps(item)) + 2
        if room < 0:
            break
        kept.append(item)
    return kept


def _encode(letter: Letter, observer: Observer) -> CloudEvent:
    # Imported when first needed: until there is something to say the SDK costs nothing.
    from cloudevents.core.formats.json import JSONFormat  # noqa: PLC0415
    from cloudevents.core.v1.event import CloudEvent as Built  # noqa: PLC0415

    subject = safe_id(letter.event_id) if letter.event_id else safe_name(observer.name)
    attributes: dict[str, Any] = {
        "specversion": "1.0",
        "type": f"{PREFIX}{letter.kind}.v1",
        "source": observer.events_source(),
        "id": letter.id,
        "time": letter.time,
        "subject": subject,
        "datacontenttype": "application/json",
        "dataschema": f"urn:scheduled-events-bridge:schema:{letter.schema}:v1",
        "partitionkey": subject,
        "observer": safe_name(observer.name),
        "severitynumber": letter.severity,
        "severitytext": next(name for least, name in _BANDS if letter.severity >= least),
    }
    if letter.event_id:
        attributes["correlationid"] = subject
    body = JSONFormat().write(Built(attributes, letter.data))
    return CloudEvent(letter.id, f"{PREFIX}{letter.kind}.v1", subject, body)
