"""Which CloudEvents a sink gets, and how long an attempt may take; pure."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from math import inf

from bridge.core.cloudevent import CloudEvent
from bridge.plugins import Delivered, Only, Rejected, Result, Unavailable

_STATUS = re.compile(rb'"status": ?"([^"]*)"')
_NOT_BEFORE = re.compile(rb'"notBefore": ?(?:null|"([^"]+)")')
MOST = 30.0
"""The longest backoff, in seconds."""
MOST_ASKED = 3600.0
"""The longest wait that a receiver may ask for."""


def wanted(event: CloudEvent, only: Only) -> bool:
    """Whether it passes the filters; `event_types` applies to transitions only.

    One that the disk damaged passes: it fails at the sink, and holds back only its own key.
    """
    if only.types is not None and not _matches(event.type, only.types):
        return False
    if only.event_types is None or not event.is_transition:
        return True
    try:
        event_type = str(event.data["eventType"])
    except (ValueError, LookupError, TypeError):
        return True
    return _matches(event_type, only.event_types)


def _matches(value: str, globs: list[str]) -> bool:
    return any(fnmatchcase(value, glob) for glob in globs)


def planned_start(event: CloudEvent) -> float | None:
    """When Azure starts the event at the earliest; None if it has started or has no such time.

    It is read for every row that is sent, so it does not decode the whole CloudEvent. Inside of
    text JSON escapes every quote, so only a key looks like one; Azure's own fields come first.
    """
    status = _STATUS.search(event.body) if event.is_transition else None
    if status is None or status[1] != b"Scheduled":
        return None
    due = _NOT_BEFORE.search(event.body)
    try:
        return datetime.fromisoformat(due[1].decode()).timestamp() if due and due[1] else None
    except (ValueError, OverflowError, OSError):  # the disk damaged it; Windows says OSError
        return None


def notice_left(start: float | None, now: float) -> float | None:
    """Seconds until Azure starts the event; None if nothing depends on that."""
    return start - now if start is not None and start > now else None


def shortest_notice(events: Iterable[CloudEvent], now: float) -> float | None:
    """The shortest notice left among them."""
    left = (notice_left(planned_start(event), now) for event in events)
    return min((notice for notice in left if notice is not None), default=None)


def may_approve(event: CloudEvent) -> bool:
    """Whether this VM may vote: the event is announced, not started, approvable and names it."""
    if not event.is_transition:
        return False
    data = event.data
    mine = data["observer"]["affected"] is True
    return mine and data["approvable"] is True and data["status"] == "Scheduled"


def attempt_timeout(configured: float, notice: float | None) -> float:
    """A third of the notice, to leave time for another attempt; at least a second."""
    return min(configured, longest_wait(notice))


def longest_wait(notice: float | None) -> float:
    """The longest wait between two attempts, whatever the receiver asks for."""
    return inf if notice is None else max(1.0, notice / 3)


def longest_backoff(notice: float | None) -> float:
    """The longest wait of our own, while the receiver asks for nothing."""
    return MOST if notice is None else min(MOST, notice / 10)


def asked_wait(problem: Unavailable) -> float:
    """The wait that the receiver asks for, within limits; 0 if it does not ask."""
    return min(max(problem.retry_after or 0.0, 0.0), MOST_ASKED)


def checked(results: object, count: int) -> list[Result]:
    """The results of a sink if they are well-formed; else `Unavailable`: they prove nothing."""
    if not isinstance(results, Sequence) or len(results) != count:
        given = len(results) if isinstance(results, Sequence) else repr(results)
        raise Unavailable(f"returned {given} results for {count} CloudEvents")
    for one in results:
        if not isinstance(one, Unavailable | Rejected | Delivered | None):
            raise Unavailable(f"returned an invalid result: {one!r}")
    return list(results)
