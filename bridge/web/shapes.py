"""The JSON objects of the API, as pure functions of the journal's content."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from bridge.core import messages
from bridge.core.ids import timestamp
from bridge.core.observer import Observer
from bridge.core.state import Tracked
from bridge.journal.cursors import Backlog, DeadLetter
from bridge.policy.votes import Vote
from bridge.runtime.refusals import UnpublishedRefusal
from bridge.runtime.status import SinkStatus

_Json = dict[str, Any]
_TOLD = (
    "eventId",
    "eventType",
    "status",
    "resourceType",
    "resources",
    "notBefore",
    "approveBy",
    "noticeSeconds",
    "description",
    "eventSource",
    "durationInSeconds",
    "state",
)


def moment(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(datetime.fromtimestamp(seconds, UTC))


def events(
    latest: list[_Json], pending: Mapping[str, Tracked], observer: Observer, now: datetime
) -> list[_Json]:
    """Pending events, the most urgent first, then past events, the latest first."""
    told = {envelope["partitionkey"]: envelope for envelope in latest}
    waiting = [event(key, told.get(key), known, observer, now) for key, known in pending.items()]
    waiting.sort(key=lambda one: (one["notBefore"] is not None, one["notBefore"] or ""))
    over = [one for one in latest if one["partitionkey"] not in pending]
    return waiting + [event(one["partitionkey"], one, None, observer, now) for one in over]


def event(
    key: str, told: _Json | None, known: Tracked | None, observer: Observer, now: datetime
) -> _Json:
    """One scheduled event: as Azure shows it now, or as we last published it."""
    data = told["data"] if told else {}
    if known is not None:
        body = messages.pending(known.event, observer, now)
        affected = known.affected
    else:
        body = {name: data.get(name) for name in _TOLD}
        affected = data.get("observer", {}).get("affected")
    return {
        **body,
        "life": known.life if known is not None else data.get("life"),
        "pending": known is not None,
        "affected": affected,
        "inferred": data.get("inferred", False),
        "drill": known.drill if known is not None else data.get("drill", False),
        "lastType": told["type"] if told else None,
        "lastChange": told["time"] if told else None,
        "href": f"/api/v1/events/{key}",
    }


def history(rows: list[_Json]) -> list[_Json]:
    """CloudEvents with their deliveries; a delivery without an outcome is still waiting."""
    return [
        {
            "cloudevent": row["cloudevent"],
            "deliveries": [
                {**one, "outcome": one["outcome"] or "waiting", "at": moment(one["at"])}
                for one in row["deliveries"]
            ],
        }
        for row in rows
    ]


def vote(cast: Vote) -> _Json:
    return {
        "eventId": cast.event_key,
        "approvalId": cast.approval,
        "approver": cast.approver,
        "resource": cast.resource or None,
        "decision": cast.decision,
        "reason": cast.reason,
        "verified": cast.verified,
        "via": cast.via,
        "at": timestamp(cast.at),
    }


def approvals(
    cast: list[Vote], published: list[_Json], kept: list[UnpublishedRefusal]
) -> list[_Json]:
    """Votes, published refusals and those that were not published, the newest first."""
    told = [_counted(one) for one in cast]
    told += [_refusal(one, stray=False) for one in published]
    told += [_refusal(one.cloudevent.envelope, stray=one.stray) for one in kept]
    return sorted(told, key=lambda one: str(one["at"]), reverse=True)


def _counted(cast: Vote) -> _Json:
    more = {"outcome": "recorded", "detail": None, "position": cast.position, "stray": False}
    return {**vote(cast), **more}


def _refusal(cloudevent: _Json, *, stray: bool) -> _Json:
    data = cloudevent["data"]
    names = ("eventId", "approvalId", "approver", "resource", "decision", "reason", "verified")
    said = {name: data[name] for name in (*names, "via")}
    more = {"outcome": "refused", "detail": data["detail"], "position": data["position"]}
    return {**said, "at": cloudevent["time"], **more, "stray": stray}


def sink(name: str, status: SinkStatus, backlog: Backlog) -> _Json:
    return {
        "name": name,
        "type": status.type,
        "required": status.required,
        "state": status.state,
        "since": moment(status.since or None),
        "waiting": backlog.waiting,
        "oldest": moment(backlog.oldest),
        "delivered": backlog.delivered,
        "dead": backlog.dead,
        "error": status.error,
    }


def dead_letter(letter: DeadLetter) -> _Json:
    return {
        "id": letter.id,
        "sink": letter.sink,
        "cloudEventId": letter.event_id,
        "type": letter.type,
        "subject": letter.subject,
        "attempts": letter.attempts,
        "firstAttempt": moment(letter.first),
        "lastAttempt": moment(letter.last),
        "reason": letter.reason,
        "href": f"/api/v1/dead-letters/{letter.id}",
    }
