"""The environment of a run: what every run gets, and the scheduled event as `EVENT_*`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bridge.plugins import CloudEvent, Unavailable, kind_of
from sinks.command.groups import GROUPS
from sinks.command.settings import CommandSettings

LONGEST = 8192
"""Characters of one variable; Windows allows 32767 for all of them. stdin has everything."""
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
    "EVENT_STATE": "state",
    "EVENT_LIFE": "life",
    "EVENT_REASON": "reason",
}


def base_environment(settings: CommandSettings) -> dict[str, str]:
    """What is the same for every run. Files are read each time: they may have changed.

    Raises `Unavailable` when one of them cannot be used.
    """
    try:
        own = {name: secret.get() for name, secret in settings.env.items()}
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"env: cannot read a file: {error}") from error
    for name, text in own.items():
        if "\0" in text:
            raise Unavailable(f"env: {name} contains a NUL character")
    return {**GROUPS.environment(), **own}


def variables(cloudevent: CloudEvent, now: float) -> dict[str, str]:
    """Every CloudEvent gets all variables; a variable without a value is empty."""
    data = cloudevent.data
    observer = data.get("observer") or {}
    told = {name: _text(data.get(key)) for name, key in _DATA.items()}
    return {
        **told,
        "EVENT_KIND": _text(kind_of(cloudevent)),
        "EVENT_RESOURCES": _joined(data.get("resources") or ()),
        "EVENT_SECONDS_LEFT": _left(data, now),
        "EVENT_VM": _text(observer.get("vm")),
        "EVENT_AFFECTED": _text(observer.get("affected")),
        "EVENT_CLOUDEVENT_ID": _text(cloudevent.id),
        "EVENT_CLOUDEVENT_TYPE": _text(cloudevent.type),
    }


def _text(value: object) -> str:
    """The value as a shell would write it, without characters that the system cannot pass on."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value).replace("\0", "")[:LONGEST]
    return text.encode("utf-8", "replace").decode("utf-8")


def _joined(names: Sequence[object]) -> str:
    """As many whole names as fit."""
    kept, room = [], LONGEST
    for name in map(_text, names):
        room -= len(name) + 1
        if room < 0:
            break
        kept.append(name)
    return ",".join(kept)


def _left(data: Mapping[str, Any], now: float) -> str:
    """Whole seconds from now until Azure proceeds; the CloudEvent may have waited in a queue."""
    due = data.get("notBefore")
    if data.get("status") != "Scheduled" or not due:
        return ""
    return str(max(0, int(datetime.fromisoformat(due).timestamp() - now)))
