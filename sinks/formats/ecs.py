"""Elastic Common Schema 9.4: for Elasticsearch and Elastic Security."""

import json
import re
from typing import Any, Literal

from bridge.plugins import CloudEvent, Format, FormatPlugin, FormatSettings
from sinks.formats._news import LARGEST, PRODUCT, News, product_version, read
from sinks.formats._sentences import tell
from sinks.formats._text import as_json, cut, filled

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


CONTENT_TYPE = "application/json; charset=utf-8"
VERSION = "9.4.0"

_KEYWORD = 1024  # Elasticsearch stores longer values but does not index them
_NANOSECONDS = 1_000_000_000
_CATEGORIES = {"transition": "host", "approval": "api", "bridge": "configuration"}
_FINAL = frozenset({"preempt", "terminate"})
_OUTCOMES = {"granted": "success", "refused": "failure", "failed": "failure"}
_VERDICTS = {"granted": "allowed", "refused": "denied"}


class EcsSettings(FormatSettings):
    """It has no keys of its own."""

    type: Literal["ecs"] = "ecs"


def _encode(cloudevent: CloudEvent) -> bytes:
    news = read(cloudevent)
    whole = filled({"event": _event(news), **_about(news)})
    fields = _fitting(whole)
    flags = {"drill": news.is_drill, "truncated": news.is_cut or fields != whole}
    document = {
        "@timestamp": news.attributes["time"],
        "message": tell(news.cloudevent).sentence,
        "tags": [name for name, raised in flags.items() if raised],
        **fields,
        "azure": own_fields(news),
    }
    return as_json(filled(document))


def _event(news: News) -> dict[str, Any]:
    seconds = news.integer("durationInSeconds")
    return {
        "kind": "state" if news.word == "snapshot" else "event",
        "category": [_category(news)],
        "type": [_type(news)],
        "action": _action(news),
        "outcome": _outcome(news),
        "id": news.cloudevent.id,
        "code": news.class_id if news.family == "bridge" else news.text("eventType"),
        "reason": news.text("description") or news.text("reason"),
        "severity": news.severity.otel,
        "sequence": _natural(news.integer("documentIncarnation")),
        "duration": None if seconds is None else _natural(seconds * _NANOSECONDS),
        "module": "azure",
        "dataset": "azure.scheduled_events",
        "provider": PRODUCT,
    }


def _category(news: News) -> str:
    if news.family == "bridge" and news.class_id.endswith(".refused"):
        return "authentication"
    return _CATEGORIES.get(news.family, "host")


def _action(news: News) -> str:
    """`scheduled-event-started`, `approval-granted`, `token-refused`."""
    said = news.text("action") if news.family == "bridge" else None
    action = (said or news.kind).replace(".", "-")
    return f"scheduled-event-{action}" if news.family == "transition" else action


def _outcome(news: News) -> str | None:
    if news.family == "approval":
        return _OUTCOMES.get(news.word, "unknown")
    return news.outcome


def _type(news: News) -> str:
    """Never `start`: with the category host that would read as "the host started"."""
    if news.family == "approval":
        return _VERDICTS.get(news.word, "info")
    if news.kind != "started":
        return "info"
    return "end" if str(news.text("eventType")).casefold() in _FINAL else "change"


def _about(news: News) -> dict[str, Any]:
    observer, user = news.observer, news.text("approver") or news.text("actor")
    address = str(news.address or "")
    return {
        "ecs": {"version": VERSION},
        "log": {"level": str(news.attributes["severitytext"]).lower()},
        "cloud": {
            "provider": "azure",
            "account": {"id": news.subscription},
            "region": observer.get("location"),
            "availability_zone": observer.get("zone"),
            "instance": {"id": observer.get("vmId"), "name": news.vm},
        },
        "host": {
            "name": news.vm,
            "id": observer.get("vmId"),
            "hostname": observer.get("hostname"),
        },
        "observer": {"vendor": PRODUCT, "product": PRODUCT, "version": product_version()},
        "related": {
            "hosts": news.names("resources"),
            "user": [user] if user else [],
            "ip": [address] if address else [],
        },
        "source": {"ip": address},
        "user": {"name": user},
        "labels": _labels(observer.get("labels")),
    }


def _labels(labels: object) -> dict[str, str]:
    """A dot in a name would make an object of it."""
    if not isinstance(labels, dict):
        return {}
    return {str(name).replace(".", "_"): str(value) for name, value in labels.items()}


def _natural(number: int | None) -> int | None:
    return number if number is not None and 0 <= number <= LARGEST else None


def _fitting(value: Any) -> Any:
    if isinstance(value, str):
        return cut(value, _KEYWORD)
    if isinstance(value, list):
        return [_fitting(each) for each in value]
    if isinstance(value, dict):
        return {name: _fitting(each) for name, each in value.items()}
    return value


def _open(_: EcsSettings) -> Format:
    return Format(_encode, CONTENT_TYPE, begins=b"{")


plugin = FormatPlugin(settings=EcsSettings, open=_open)
