"""Which CloudEvents a sink gets, and how much time an attempt may take: pure rules of delivery."""

from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from bridge.cloudevent import CloudEvent
from bridge.plugins import Only

MOST = 30.0
"""The longest wait between two attempts, in seconds."""


def wanted(event: CloudEvent, only: Only) -> bool:
    """Whether the filters let it pass; `event_types` judges transitions only."""
    if only.types is not None and not _matches(event.type, only.types):
        return False
    if only.event_types is None or not is_transition(event):
        return True
    return _matches(str(event.data["eventType"]), only.event_types)


def _matches(value: str, globs: list[str]) -> bool:
    return any(fnmatchcase(value, glob) for glob in globs)


def is_transition(event: CloudEvent) -> bool:
    """Only what happened to a scheduled event can be overtaken by what happened next."""
    name = event.type.removeprefix("azure.scheduledevents.")
    return name.partition(".")[0] in {"scheduled", "updated", "started", "completed", "canceled"}


def notice_left(event: CloudEvent, now: float) -> float | None:
    """Seconds until Azure goes ahead; None when nothing is waiting for that."""
    if not is_transition(event):
        return None
    data: dict[str, Any] = event.data
    if data["status"] != "Scheduled" or not data["notBefore"]:
        return None
    left = datetime.fromisoformat(data["notBefore"]).timestamp() - now
    return left if left > 0 else None


def attempt_timeout(configured: float, notice: float | None) -> float:
    """A third of the notice, so that there is time for another attempt; never under a second."""
    return configured if notice is None else min(configured, max(1.0, notice / 3))


def longest_wait(notice: float | None) -> float:
    return MOST if notice is None else min(MOST, max(1.0, notice / 10))
