"""The CloudEvents that we publish: one function for each type."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from bridge.core.cloudevent import CloudEvent, TransitionKind
from bridge.core.envelope import Draft, write
from bridge.core.ids import digest, identify, number, timestamp
from bridge.core.model import SCHEDULED, ScheduledEvent
from bridge.core.observer import Observer
from bridge.core.state import Tracked, Transition

SourceEventKind = Literal["degraded", "recovered", "snapshot"]
OutcomeKind = Literal["recorded", "granted", "refused", "failed", "due"]
KINDS = (
    *get_args(TransitionKind),
    *(f"approval.{became}" for became in get_args(OutcomeKind)),
    *(f"source.{news}" for news in get_args(SourceEventKind)),
    "bridge.audited",
)
"""All types that we publish, without prefix and version."""

_STATUS = {
    "scheduled": "Scheduled",
    "updated": "Scheduled",
    "started": "Started",
    "completed": "Completed",
    "canceled": "Canceled",
}
_RANK = {"scheduled": 1, "updated": 1, "started": 2, "canceled": 3, "completed": 4}
_FINAL = frozenset({"preempt", "terminate"})
_AUDIT_SEVERITY = {"refused": 13, "lost": 17, "set-aside": 17}
"""By the last word of the action; all others are 9."""
_EARLIEST = datetime.min.replace(tzinfo=UTC)


def transition(
    happened: Transition, observer: Observer, now: datetime, incarnation: int | str | None
) -> CloudEvent:
    """The CloudEvent about a change of a scheduled event."""
    event, what = happened.event, happened.what
    parts = [event.key, what, str(happened.life)]
    data = {
        **pending(event, observer, now, status=_STATUS[what]),
        "rank": _RANK[what],
        "life": happened.life,
        "previousStatus": happened.previous_status,
        "approvable": what in {"scheduled", "updated"},
        "terminal": what == "started" and event.event_type.casefold() in _FINAL,
        "inferred": happened.inferred,
        "drill": happened.drill,
        "changes": dict(happened.changes),
        "documentIncarnation": incarnation,
        "observer": observer.described(affected=happened.affected),
    }
    if event.extra:
        data["extra"] = dict(event.extra)
    if what == "updated":
        parts += [data["state"], str(happened.repeat)]
    draft = Draft(
        kind=what,
        id=identify(*parts),
        time=now,
        schema="scheduled-event",
        severity=_severity(happened),
        event_id=event.key,
        data=data,
    )
    return write(draft, observer)


def pending(
    event: ScheduledEvent, observer: Observer, now: datetime, status: str | None = None
) -> dict[str, Any]:
    """What Azure says about a scheduled event, with the time left and the name of its state.

    *status* is what it became, if that is not what Azure says.
    """
    status = status or event.status
    waiting = status == SCHEDULED and event.not_before is not None
    due = event.not_before
    return {
        "eventId": event.key,
        "eventType": event.event_type,
        "status": status,
        "resourceType": event.resource_type,
        "resources": list(event.resources),
        "notBefore": timestamp(due) if due else None,
        "approveBy": timestamp(_approve_by(due, observer)) if due and waiting else None,
        "noticeSeconds": round((due - now).total_seconds(), 1) if due and waiting else None,
        "description": event.description,
        "eventSource": event.event_source,
        "durationInSeconds": number(event.duration),
        "state": digest(event),
    }


def _approve_by(due: datetime, observer: Observer) -> datetime:
    """A little before NotBefore, unless that is the year 1, which .NET writes for "no time"."""
    return max(due, _EARLIEST + observer.margin) - observer.margin


def _severity(happened: Transition) -> int:
    kind = happened.event.event_type.casefold()
    if happened.what in {"completed", "canceled"}:
        return 9
    if happened.what == "started" and happened.previous_status is None:
        return 18
    if kind in _FINAL:
        return 17
    if kind == "freeze":
        return 10
    return 14 if happened.what == "started" else 13


@dataclass(frozen=True, slots=True)
class SourceReport:
    """The state of the metadata service as this bridge sees it."""

    since: datetime
    endpoint: str | None
    last_good: datetime | None
    boot_id: str | None
    bridge_version: str
    journal: str = "continued"
    reason: str | None = None
    status: int | None = None
    clock_skew: float | None = None


def source(
    what: SourceEventKind,
    about: SourceReport,
    observer: Observer,
    now: datetime,
    tracked: Mapping[str, Tracked] | None = None,
) -> CloudEvent:
    """`source.degraded`, `source.recovered` or `source.snapshot`, the last with what is pending."""
    known = (tracked or {}).values()
    data = {
        "vm": observer.vm_name or observer.instance.name,
        "vmId": observer.instance.vm_id,
        "bootId": about.boot_id,
        "bridgeVersion": about.bridge_version,
        "endpoint": about.endpoint,
        "since": timestamp(about.since),
        "lastGood": timestamp(about.last_good) if about.last_good else None,
        "reason": about.reason,
        "status": about.status,
        "clockSkewSeconds": about.clock_skew,
        "journal": about.journal,
        "pending": [
            {**pending(entry.event, observer, now), "life": entry.life, "drill": entry.drill}
            for entry in known
            if entry.announced
        ],
    }
    draft = Draft(
        kind=f"source.{what}",
        id=_began(observer, f"source.{what}", about.since),
        time=now,
        schema="source",
        severity=17 if what == "degraded" else 9,
        event_id=None,
        data=data,
    )
    return write(draft, observer)


def audited(
    action: str,
    observer: Observer,
    now: datetime,
    *,
    actor: str,
    via: str,
    detail: Mapping[str, Any],
    address: str | None = None,
    second: datetime | None = None,
) -> CloudEvent:
    """`bridge.audited`: an operator's action, or a decision that may need an explanation later.

    Its id is derived from *second*, because another one may have used the current second.
    """
    severity = _AUDIT_SEVERITY.get(action.rpartition(".")[2], 9)
    draft = Draft(
        kind="bridge.audited",
        id=_began(observer, "bridge.audited", second or now),
        time=now,
        schema="audit",
        severity=severity,
        event_id=None,
        data={
            "action": action,
            "actor": actor,
            "via": via,
            "address": address,
            "outcome": "failure" if severity > 9 else "success",
            "vm": observer.vm_name or observer.instance.name,
            "vmId": observer.instance.vm_id,
            "detail": dict(detail),
        },
    )
    return write(draft, observer)


def _began(observer: Observer, kind: str, began: datetime) -> str:
    """The id of a CloudEvent about the bridge itself: one per kind and second."""
    return identify(observer.identity, kind, timestamp(began.replace(microsecond=0)))
