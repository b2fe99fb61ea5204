"""What ECS has no home for, under names of our own that always hold the same type."""

import json
import re
from typing import Any

from sinks.formats._news import LARGEST, News

_OF_THE_EVENT = frozenset(
    {
        "eventId",
        "eventType",
        "notBefore",
        "noticeSeconds",
        "resources",
        "resourcesTruncated",
        "drill",
    }
)
_PLACES = {
    "transition": "scheduled_event",
    "approval": "approval",
    "source": "metadata_service",
    "bridge": "audit",
}
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def own_fields(news: News) -> dict[str, dict[str, Any]]:
    """The CloudEvent's data in snake case; the event's own facts always under `scheduled_event`."""
    place = _PLACES.get(news.family, "other")
    fields: dict[str, dict[str, Any]] = {"scheduled_event": {}, place: {}}
    for name, value in news.data.items():
        if name not in {"observer", "pending"}:
            where = "scheduled_event" if name in _OF_THE_EVENT else place
            fields[where][_HUMP.sub("_", name).lower()] = _indexable(name, value)
    fields[place]["pending"] = news.pending
    return fields


def _indexable(name: str, value: Any) -> Any:
    """An index rejects a document in which a field has another type than it had before."""
    if name == "documentIncarnation":
        return None if value is None else str(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value if -LARGEST <= value <= LARGEST else None
    if isinstance(value, dict) and name != "votes":
        return json.dumps(value, ensure_ascii=False) if value else None
    return value
