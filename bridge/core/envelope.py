"""The envelope of our CloudEvents: attributes, the size limit, and their JSON format."""

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bridge.core.cloudevent import CloudEvent, full_type
from bridge.core.ids import safe_id, safe_name
from bridge.core.model import may_be_unwritable, writable
from bridge.core.observer import Observer

LIMIT = 65536
"""The size that every CloudEvents intermediary must forward."""

_FAR_TOO_MANY = LIMIT // 64
"""No pending event takes only 64 bytes."""
_Data = dict[str, Any]
_BANDS = ((21, "FATAL"), (17, "ERROR"), (13, "WARN"), (9, "INFO"))


def _rfc3339(moment: object) -> str:
    """A time as CloudEvents write it; nothing else in a CloudEvent needs help to become JSON."""
    if not isinstance(moment, datetime):
        raise TypeError(f"cannot write {type(moment).__name__} into a CloudEvent")
    text = moment.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


_JSON = json.JSONEncoder(allow_nan=False, default=_rfc3339)


@dataclass(frozen=True, slots=True)
class Draft:
    """A CloudEvent before encoding: the parts that vary."""

    kind: str
    id: str
    time: datetime
    schema: str
    severity: int
    event_id: str | None
    data: dict[str, Any]
    causation: str | None = None


def write(draft: Draft, observer: Observer) -> CloudEvent:
    """Encode; drop the least useful data until it is small enough for every transport."""
    attributes = _attributes(draft, observer)
    data, text = _written(attributes, draft.data)
    for shorten in (_without_extra, _short_descriptions, _fewer_resources, _fewer_pending, _clip):
        if len(text) <= LIMIT:
            break
        data = shorten(data)
        text = _encoded(attributes, data)
    return CloudEvent(draft.id, attributes["type"], attributes["subject"], text.encode())


def with_attribute(cloudevent: CloudEvent, name: str, value: str) -> CloudEvent:
    """The same with one more attribute, of harmless characters; unchanged if it has no room."""
    attributes, mark, data = cloudevent.body.partition(b', "data": ')
    body = attributes + f', "{name}": "{value}"'.encode("ascii") + mark + data
    return replace(cloudevent, body=body) if mark and len(body) <= LIMIT else cloudevent


def _written(attributes: _Data, data: _Data) -> tuple[_Data, str]:
    """The data as every reader can read it, and all as JSON in ASCII."""
    try:
        text = _encoded(attributes, data)
    except (ValueError, RecursionError):  # NaN, or nested without end
        text = ""
    if not text or may_be_unwritable(text):
        data = writable(data)
        text = _encoded(attributes, data)
    return data, text


def _encoded(attributes: _Data, data: _Data) -> str:
    """As JSON. Of far too many pending events only some, which are too long as well."""
    if len(data.get("pending") or ()) > _FAR_TOO_MANY:
        data = {**data, "pending": data["pending"][: _FAR_TOO_MANY + 1]}
    return _JSON.encode({**attributes, "data": data})


def _without_extra(data: _Data) -> _Data:
    return _without(data, "extra")


def _short_descriptions(data: _Data) -> _Data:
    """Shorten a snapshot's descriptions: readers got them when the events were announced."""
    short = dict(data)
    if data.get("description"):
        short["description"] = data["description"][:1024]
    if "changes" in data:
        short["changes"] = _without(data["changes"], "description")
    if "pending" in data:
        short["pending"] = [{**event, "description": None} for event in data["pending"]]
    return short


def _fewer_resources(data: _Data, room: int = LIMIT // 2) -> _Data:
    short = dict(data)
    if "changes" in data:
        short["changes"] = _without(data["changes"], "resources")
    if "resources" in data:
        short = _cut(short, "resources", room)
    if data.get("pending"):
        share = room // len(data["pending"])
        short["pending"] = [_cut(event, "resources", share) for event in data["pending"]]
    return short


def _fewer_pending(data: _Data, room: int = LIMIT * 3 // 4) -> _Data:
    return _cut(data, "pending", room) if "pending" in data else data


def _clip(data: _Data) -> _Data:
    """The last resort, for hostile input: keep only the beginning of everything."""
    short = _fewer_pending(_fewer_resources(data, LIMIT // 8), LIMIT // 4)
    if "changes" in data:
        short["changes"] = {}
    return {name: _beginning(value, LIMIT * 3 // 8) for name, value in short.items()}


def _beginning(value: Any, room: int) -> Any:
    if isinstance(value, str):
        return value[:128]
    if isinstance(value, list):
        return _fitting([_beginning(item, room // 6) for item in value], room)
    if isinstance(value, dict):
        return dict(_fitting([(k[:128], _beginning(v, room // 6)) for k, v in value.items()], room))
    return value


def _without(data: _Data, left_out: str) -> _Data:
    return {name: value for name, value in data.items() if name != left_out}


def _cut(data: _Data, name: str, room: int) -> _Data:
    """Keep as many as fit, and say how many were left out."""
    kept = _fitting(data[name], room)
    lost = len(data[name]) - len(kept) + data.get(f"{name}Truncated", 0)
    return {**data, name: kept, f"{name}Truncated": lost} if lost else data


def _fitting(items: list[Any], room: int) -> list[Any]:
    kept = []
    for item in items:
        room -= len(json.dumps(item)) + 2
        if room < 0:
            break
        kept.append(item)
    return kept


def _attributes(draft: Draft, observer: Observer) -> dict[str, Any]:
    subject = safe_id(draft.event_id) if draft.event_id else safe_name(observer.name)
    attributes: dict[str, Any] = {
        "specversion": "1.0",
        "type": full_type(draft.kind),
        "source": observer.events_source(),
        "id": draft.id,
        "time": _rfc3339(draft.time),
        "subject": subject,
        "datacontenttype": "application/json",
        "dataschema": f"urn:scheduled-events-bridge:schema:{draft.schema}:v1",
        "partitionkey": subject,
        "observer": safe_name(observer.name),
        "severitynumber": draft.severity,
        "severitytext": next(name for least, name in _BANDS if draft.severity >= least),
    }
    if draft.event_id:
        attributes["correlationid"] = subject
    if draft.causation:
        attributes["causationid"] = safe_id(draft.causation)
    return attributes
