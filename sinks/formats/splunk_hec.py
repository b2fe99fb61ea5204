"""Splunk's HTTP Event Collector: the envelope of one event, with CIM's names for changes."""

from functools import partial
from typing import Any, Literal

from pydantic import Field

from bridge.plugins import CloudEvent, Format, FormatPlugin, FormatSettings
from sinks.formats._news import PRODUCT, News, read
from sinks.formats._text import as_json, cut, filled

CONTENT_TYPE = "application/json; charset=utf-8"

_ACTIONS = {
    "scheduled": "created",
    "updated": "modified",
    "started": "started",
    "completed": "stopped",
    "canceled": "deleted",
    "source.snapshot": "read",
}
_FAILURES = frozenset({"refused", "failed", "degraded"})
_MOST_NAMES = 100
_LONGEST = 1024


class SplunkHecSettings(FormatSettings):
    """Where Splunk stores it; defaults come from the CloudEvent or from the token."""

    type: Literal["splunk-hec"] = "splunk-hec"
    index: str | None = Field(None, min_length=1, description="default: the token's index")
    sourcetype: str = Field("azure:scheduledevents", min_length=1)
    host: str | None = Field(None, min_length=1, description="default: the VM that published it")
    source: str | None = Field(None, min_length=1, description="default: the CloudEvent's source")


def _encode(settings: SplunkHecSettings, cloudevent: CloudEvent) -> bytes:
    news = read(cloudevent)
    envelope = {
        "time": news.time / 1000,
        "host": settings.host or news.vm,
        "source": settings.source or news.attributes["source"],
        "sourcetype": settings.sourcetype,
        **({"index": settings.index} if settings.index else {}),
        "event": cloudevent.envelope,
        "fields": filled(_fields(news)),
    }
    return as_json(envelope)


def _fields(news: News) -> dict[str, Any]:
    """Fields at index time are flat and contain text; a list is a field with several values."""
    names = [cut(name, _LONGEST) for name in news.names("resources")[:_MOST_NAMES]]
    about_event = news.family in {"transition", "approval"}
    return {
        "action": _ACTIONS.get(news.kind, "modified"),
        "change_type": "instance" if about_event else "service",
        "object": names or None,
        "object_category": "instance" if about_event else "service",
        "object_id": _short(news.text("eventId")),
        "dest": _short(news.text("resource") or news.vm),
        "dvc": _short(news.vm),
        "src": str(news.address or ""),
        "status": news.outcome or ("failure" if news.word in _FAILURES else "success"),
        "result": _short(news.text("reason")),
        "signature": _short(news.text("eventType") or news.text("action")),
        "signature_id": news.class_id,
        "user": _short(news.text("approver") or news.text("actor")),
        "vendor_product": PRODUCT,
    }


def _short(value: str | None) -> str | None:
    return value and cut(value, _LONGEST)


def _open(settings: SplunkHecSettings) -> Format:
    return Format(partial(_encode, settings), CONTENT_TYPE, begins=b"{")


plugin = FormatPlugin(settings=SplunkHecSettings, open=_open)
