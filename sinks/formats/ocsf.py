"""Open Cybersecurity Schema Framework 1.8.0: for Amazon Security Lake and others."""

from typing import Any, Literal

from bridge.plugins import CloudEvent, Format, FormatPlugin, FormatSettings
from sinks.formats._news import PRODUCT, SERVICE, News, product_version, read
from sinks.formats._sentences import tell
from sinks.formats._text import as_json, filled

CONTENT_TYPE = "application/json; charset=utf-8"
VERSION = "1.8.0"

_SEVERITIES = {1: "Informational", 2: "Low", 3: "Medium", 4: "High", 5: "Critical", 6: "Fatal"}
_OTHER = 99
_VIRTUAL = 6
_SUBSCRIPTION = 13
_AFFECTED = 3
# For each transition: activity, its name, and the state of the job.
_JOBS = {
    "scheduled": (1, "Create", 2, "Queued"),
    "updated": (2, "Update", 2, "Queued"),
    "started": (6, "Start", 3, "Running"),
    "canceled": (3, "Delete", 4, "Stopped"),
    "completed": (_OTHER, "Completed", 4, "Stopped"),
}
_UNKNOWN_JOB = (0, "Unknown", 0, "Unknown")
_STATUSES = {"recorded": 1, "granted": 1, "refused": 2, "failed": 2}
_STATUS_NAMES = {0: "Unknown", 1: "Success", 2: "Failure"}


class OcsfSettings(FormatSettings):
    """It has no keys of its own."""

    type: Literal["ocsf"] = "ocsf"


def _encode(cloudevent: CloudEvent) -> bytes:
    news = read(cloudevent)
    family = "reminder" if news.kind == "approval.due" else news.family  # nobody called an API
    particular, mapped = _CLASSES.get(family, (_base_event, frozenset()))
    rest = {name: value for name, value in news.data.items() if name not in mapped}
    return as_json(filled({**_common(news), **particular(news), "unmapped": rest}))


def _class(uid: int, activity: int, activity_name: str) -> dict[str, Any]:
    return {
        "category_uid": uid // 1000,
        "class_uid": uid,
        "activity_id": activity,
        "activity_name": activity_name,
        "type_uid": uid * 100 + activity,
    }


def _common(news: News) -> dict[str, Any]:
    return {
        "time": news.time,
        "severity_id": news.severity.ocsf,
        "severity": _SEVERITIES[news.severity.ocsf],
        "message": tell(news.cloudevent).sentence,
        "metadata": _metadata(news),
        "cloud": _cloud(news),
        "device": _device(news),
    }


def _metadata(news: News) -> dict[str, Any]:
    event_id = news.text("eventId")
    return {
        "version": VERSION,
        "product": {"name": PRODUCT, "vendor_name": PRODUCT, "version": product_version()},
        "profiles": ["cloud", "host"],
        "uid": news.cloudevent.id,
        "correlation_uid": event_id,
        "original_event_uid": event_id,
        "event_code": news.class_id,
        "log_name": news.cloudevent.type,
        "log_provider": SERVICE,
        "source": news.attributes["source"],
        "original_time": news.attributes["time"],
        "is_truncated": True if news.is_cut else None,
        "labels": ["drill"] if news.is_drill else None,
    }


def _cloud(news: News) -> dict[str, Any]:
    subscription = news.subscription
    account = {"uid": subscription, "type": "Azure Subscription", "type_id": _SUBSCRIPTION}
    return {
        "provider": "Azure",
        "account": account if subscription else None,
        "region": news.observer.get("location"),
        "zone": news.observer.get("zone"),
    }


def _device(news: News) -> dict[str, Any]:
    observer = news.observer
    return {
        "type_id": _VIRTUAL,
        "type": "Virtual",
        "name": news.vm,
        "hostname": observer.get("hostname"),
        "instance_uid": observer.get("vmId"),
        "uid": observer.get("resourceId"),
        "region": observer.get("location"),
        "zone": observer.get("zone"),
    }


def _job_activity(news: News) -> dict[str, Any]:
    activity, activity_name, state, state_name = _JOBS.get(news.kind, _UNKNOWN_JOB)
    job = {
        "name": f"{news.text('eventType')} {news.text('eventId')}",
        "desc": news.text("description"),
        "next_run_time": news.moment("notBefore") if state_name == "Queued" else None,
        "run_state_id": state,
        "run_state": state_name,
    }
    return {**_class(1006, activity, activity_name), "job": job}


def _api_activity(news: News) -> dict[str, Any]:
    status, approver = _STATUSES.get(news.word, 0), news.text("approver")
    posted = news.moment("postedAt") is not None
    names = news.names("resources")
    return {
        **_class(6003, 3, "Update"),
        "actor": {"user": {"name": approver}} if approver else {"app_name": PRODUCT},
        "api": {
            "operation": "StartRequests" if posted else news.text("decision") or "approve",
            "service": {"name": SERVICE},
        },
        "http_request": {"http_method": "POST", "url": {"path": "/metadata/scheduledevents"}}
        if posted
        else None,
        "src_endpoint": {"name": news.vm, "instance_uid": news.observer.get("vmId")},
        "resources": [{"name": name, "role_id": _AFFECTED, "role": "Affected"} for name in names],
        "status_id": status,
        "status": _STATUS_NAMES[status],
        "status_code": news.text("reason"),
        "status_detail": news.text("detail"),
    }


def _audit_activity(news: News) -> dict[str, Any]:
    status = {"success": 1, "failure": 2}.get(news.outcome or "", 0)
    caller = {"ip": str(news.address)} if news.address else {"name": news.vm}
    return {
        **_class(6003, _OTHER, news.text("action") or news.kind),
        "actor": {"user": {"name": news.text("actor") or PRODUCT}},
        "api": {"operation": news.text("action") or news.kind, "service": {"name": PRODUCT}},
        "src_endpoint": caller,
        "status_id": status,
        "status": _STATUS_NAMES[status],
    }


def _base_event(news: News) -> dict[str, Any]:
    return _class(0, _OTHER, news.kind)


# The fields of each class; everything else goes to `unmapped`.
_CLASSES = {
    "transition": (_job_activity, frozenset({"description", "observer"})),
    "approval": (
        _api_activity,
        frozenset({"approver", "reason", "detail", "resources", "observer"}),
    ),
    "bridge": (_audit_activity, frozenset({"action", "actor", "address", "outcome", "vm", "vmId"})),
}


def _open(_: OcsfSettings) -> Format:
    return Format(_encode, CONTENT_TYPE, begins=b"{")


plugin = FormatPlugin(settings=OcsfSettings, open=_open)
