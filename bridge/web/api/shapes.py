"""The JSON objects of the API, as pure functions of the journal's content."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, get_args

from bridge.config import ApprovalsSettings, Config, JournalSettings, SourceSettings
from bridge.config.models import Scope
from bridge.core import messages
from bridge.core.ids import timestamp
from bridge.core.model import Instance
from bridge.core.observer import Observer
from bridge.core.state import Tracked
from bridge.journal import Journal
from bridge.journal.cursors import Backlog, DeadLetter
from bridge.policy.votes import Vote
from bridge.runtime.refusals import UnpublishedRefusal
from bridge.runtime.status import ListenerStatus, ReloadResult, SinkStatus, SourceStatus, Status
from bridge.web.access.tokens import Caller
from bridge.web.health.readiness import SILENT

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


def vm(name: str | None, instance: Instance) -> _Json:
    return {
        "name": name,
        "vmId": instance.vm_id,
        "resourceId": instance.resource_id,
        "location": instance.location,
        "zone": instance.zone,
        "scaleSet": instance.scale_set,
        "hostname": instance.hostname,
    }


def caller(who: Caller) -> _Json:
    return {
        "name": who.name,
        "via": who.via,
        "by": who.by,
        "scopes": [scope for scope in get_args(Scope) if scope in who.scopes],
        "expires": moment(who.expires),
    }


def access(config: Config) -> _Json:
    """What can prove a caller over HTTP; without any of it, HTTP is read-only."""
    http = config.http
    signed = any(rule.keys and rule.via in (None, "http") for rule in config.approvals.allow)
    tokens, certificates = bool(http.tokens), http.asks_for_certificates
    votes = any("approve" in token.scopes for token in http.tokens) or certificates or signed
    return {"tokens": tokens, "certificates": certificates, "votes": votes}


def source(seen: SourceStatus, settings: SourceSettings, now: float) -> _Json:
    """The metadata service; *now* is monotonic."""
    age = seen.good_age(now)
    failing = "waiting" if age is None and seen.problem is None else "failing"
    state = "degraded" if seen.degraded else failing if seen.problem or age is None else "good"
    return {
        "endpoint": seen.endpoint,
        "state": state,
        "lastGood": timestamp(seen.last_good) if seen.last_good else None,
        "lastGoodAgeSeconds": None if age is None else round(age, 3),
        "polls": seen.polls,
        "problem": seen.problem,
        "detail": seen.detail,
        "httpStatus": seen.http_status,
        "problems": dict(seen.problems),
        "clockSkewSeconds": seen.clock_skew,
        "clockSkewed": seen.skewed,
        "pollIntervalSeconds": settings.poll_interval,
        "scope": settings.scope,
        "apiVersion": settings.api_version,
    }


def journal(kept: Journal, settings: JournalSettings, size: int, status: Status) -> _Json:
    return {
        "path": str(kept.path),
        "writable": kept.trouble is None,
        "trouble": kept.trouble,
        "bytes": size,
        "maxBytes": settings.max_size,
        "lost": status.journal_losses,
    }


def approval_sources(listeners: Mapping[str, ListenerStatus], now: float) -> list[_Json]:
    """The approval sources; *now* is monotonic."""
    return [_approval_source(name, one, now) for name, one in listeners.items()]


def _approval_source(name: str, one: ListenerStatus, now: float) -> _Json:
    ago = None if one.heard is None else max(0.0, now - one.heard)
    return {
        "name": name,
        "type": one.type,
        "state": one.state,
        "error": one.error,
        "received": one.received,
        "heardSecondsAgo": None if ago is None else round(ago, 3),
        "lag": one.lag,
        "silent": ago is not None and ago > SILENT,
    }


def approval_rules(settings: ApprovalsSettings) -> _Json:
    return {
        "require": str(settings.require),
        "dryRun": settings.dry_run,
        "holdTimeoutSeconds": settings.hold_timeout,
        "marginSeconds": settings.margin,
        "earlyGraceSeconds": settings.early_grace,
        "remindSeconds": list(settings.remind),
    }


def reload(done: ReloadResult) -> _Json:
    return {
        "outcome": done.outcome,
        "at": moment(done.at),
        "by": done.actor,
        "via": done.via,
        "changed": list(done.changed),
        "errors": list(done.errors),
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
