"""What a command is told in its environment: a scheduled event as `EVENT_*` variables."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bridge.plugins import CloudEvent

LONGEST = 8192
"""Characters of one variable; Windows allows 32767 for all of them. stdin has everything."""
_PREFIX = "azure.scheduledevents."
_DATA = {
    "EVENT_ID": "eventId",
    "EVENT_TYPE": "eventType",
    "EVENT_STATUS": "status",
    "EVENT_NOT_BEFORE": "notBefore",
    "EVENT_APPROVE_BY": "approveBy",
    "EVENT_NOTICE_SECONDS": "noticeSeconds",
    "EVENT_DURATION_SECONDS": "durationInSeconds",
    "EVENT_SOURCE": "eventSource",
    "EVENT_DESCRIPTION": "description",
    "EVENT_APPROVABLE": "approvable",
    "EVENT_DRILL": "drill",
    "EVENT_REASON": "reason",
}


def variables(cloudevent: CloudEvent, now: float) -> dict[str, str]:
    """All of them for every CloudEvent; one that has nothing to tell is empty."""
    data = cloudevent.data
    observer = data.get("observer") or {}
    told = {name: _text(data.get(key)) for name, key in _DATA.items()}
    return {
        **told,
        "EVENT_KIND": _text(cloudevent.type.removeprefix(_PREFIX).removesuffix(".v1")),
        "EVENT_RESOURCES": _joined(data.get("resources") or ()),
        "EVENT_SECONDS_LEFT": _left(data, now),
        "EVENT_VM": _text(observer.get("vm")),
        "EVENT_AFFECTED": _text(observer.get("affected")),
        "EVENT_CLOUDEVENT_ID": _text(cloudevent.id),
        "EVENT_CLOUDEVENT_TYPE": _text(cloudevent.type),
    }


def _text(value: object) -> str:
    """As a shell would write it; what the system cannot pass on is left out."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value).replace("\0", "")[:LONGEST]
    return text.encode("utf-8", "replace").decode("utf-8")


def _joined(names: Sequence[object]) -> str:
    """As many whole names as there is room for."""
    kept, room = [], LONGEST
    for name in map(_text, names):
        room -= len(name) + 1
        if room < 0:
            break
        kept.append(name)
    return ",".join(kept)


def _left(data: Mapping[str, Any], now: float) -> str:
    """Whole seconds until Azure goes ahead, as of now: what was told may have waited."""
    due = data.get("notBefore")
    if data.get("status") != "Scheduled" or not due:
        return ""
    return str(max(0, int(datetime.fromisoformat(due).timestamp() - now)))
