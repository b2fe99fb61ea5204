"""The JSON objects about the bridge itself: its VM, its parts, its rules and its caller; pure."""

from collections.abc import Mapping
from typing import Any, get_args

from bridge.config import ApprovalsSettings, Config, JournalSettings, SourceSettings
from bridge.config.models import Scope
from bridge.core.ids import timestamp
from bridge.core.model import Instance
from bridge.journal import Journal
from bridge.runtime.status import ListenerStatus, ReloadResult, SourceStatus, Status
from bridge.web.access.tokens import Caller
from bridge.web.api.shapes import moment
from bridge.web.health.readiness import SILENT

_Json = dict[str, Any]


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
