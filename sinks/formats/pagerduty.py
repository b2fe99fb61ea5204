"""PagerDuty, Events API v2: one alert for each scheduled event, opened and closed by EventId."""

from functools import partial
from typing import Any, Literal

from pydantic import Field

from bridge.plugins import (
    CloudEvent,
    Format,
    FormatPlugin,
    FormatSettings,
    Rejected,
    Secret,
    kind_of,
    read_secret,
)
from sinks.formats._human import clean, cut
from sinks.formats._sentences import tell
from sinks.formats._text import as_json

LONGEST_SUMMARY = 1024
LONGEST_KEY = 255
_SEVERITIES = ((18, "critical"), (17, "error"), (13, "warning"), (0, "info"))

Action = Literal["trigger", "acknowledge", "resolve"]
_ACTIONS: dict[str, Action] = {
    "scheduled": "trigger",
    "updated": "trigger",
    "completed": "resolve",
    "canceled": "resolve",
    "approval.granted": "acknowledge",
    "approval.failed": "trigger",
    "approval.due": "trigger",
    "source.degraded": "trigger",
    "source.recovered": "resolve",
}
"""Types that are neither here nor `started` do not page anyone."""


class PagerDutySettings(FormatSettings):
    """Whom to page, and what the start of a scheduled event does to the alert."""

    type: Literal["pagerduty"]
    routing_key: Secret = Field(description="the integration key of Events API v2")
    started: Literal["trigger", "acknowledge"] = Field(
        "trigger",
        description="trigger: the alert pages until the end; acknowledge: until Azure starts",
    )


def choose_action(cloudevent: CloudEvent, started: Action) -> Action | None:
    """None for what does not concern a pager. An unannounced start has not paged anyone yet."""
    kind = kind_of(cloudevent)
    if kind != "started":
        return _ACTIONS.get(kind)
    return started if cloudevent.data.get("previousStatus") else "trigger"


def find_key(cloudevent: CloudEvent) -> str:
    """The EventId, the same on every VM that sees the event, so that all of them open one alert.

    A failed approval, and a failing source of one VM, each have an alert of their own.
    """
    kind, attributes = kind_of(cloudevent), cloudevent.attributes
    if kind.startswith("source."):
        return cut(f"source/{cloudevent.data.get('vmId') or attributes['subject']}", LONGEST_KEY)
    if kind in {"approval.failed", "approval.due"}:
        return f"{attributes['subject']}/{kind}"
    return str(attributes["subject"])


def _encode(settings: PagerDutySettings, cloudevent: CloudEvent) -> bytes:
    action = choose_action(cloudevent, settings.started)
    if action is None:
        raise Rejected(f"pagerduty cannot express {cloudevent.type}")
    body: dict[str, Any] = {
        "routing_key": read_secret(settings.routing_key, "routing_key"),
        "event_action": action,
        "dedup_key": find_key(cloudevent),
        "payload": _payload(cloudevent),
        "client": "scheduled-events-bridge",
    }
    return as_json(body)


def _payload(cloudevent: CloudEvent) -> dict[str, Any]:
    told, attributes, data = tell(cloudevent), cloudevent.attributes, cloudevent.data
    details: dict[str, Any] = {"told": told.sentence, "cloudevent": attributes, "data": data}
    if told.todo:
        details["when_ready"] = told.todo
    severity = attributes["severitynumber"]
    return {
        "summary": cut(f"{told.headline}. {told.sentence}", LONGEST_SUMMARY),
        "source": clean(_vm(cloudevent), 255) or "unknown",
        "severity": next(name for least, name in _SEVERITIES if severity >= least),
        "timestamp": attributes["time"],
        "component": "Azure Scheduled Events",
        "group": clean(attributes["source"], 255),
        "class": clean(data.get("eventType") or kind_of(cloudevent), 255),
        "custom_details": details,
    }


def _vm(cloudevent: CloudEvent) -> object:
    """The first affected VM; the VM that published it when none is named."""
    resources = cloudevent.data.get("resources") or []
    return (resources and resources[0]) or cloudevent.attributes["observer"]


def _open(settings: PagerDutySettings) -> Format:
    def wants(cloudevent: CloudEvent) -> bool:
        return choose_action(cloudevent, settings.started) is not None

    return Format(partial(_encode, settings), "application/json", wants)


plugin = FormatPlugin(settings=PagerDutySettings, open=_open, stale="skip")
