"""OpenTelemetry's logs as OTLP/HTTP JSON: with the webhook sink, an exporter without a library."""

from collections.abc import Mapping
from typing import Any, Literal

from bridge.plugins import CloudEvent, Format, FormatPlugin, FormatSettings
from sinks.formats._news import LARGEST, PRODUCT, News, product_version, read
from sinks.formats._sentences import tell
from sinks.formats._text import as_json

CONTENT_TYPE = "application/json"

_NANOSECONDS = 1_000_000
_Value = dict[str, Any]


class OtlpSettings(FormatSettings):
    """It has no keys of its own."""

    type: Literal["otlp"] = "otlp"


def _encode(cloudevent: CloudEvent) -> bytes:
    """An ExportLogsServiceRequest with one record."""
    news = read(cloudevent)
    scope = {"name": PRODUCT, "version": product_version()}
    logs = {"scope": scope, "logRecords": [_record(news)]}
    resource = {"attributes": _pairs(_resource(news))}
    return as_json({"resourceLogs": [{"resource": resource, "scopeLogs": [logs]}]})


def _record(news: News) -> dict[str, Any]:
    moment = str(news.time * _NANOSECONDS)  # 64 bits are text in protobuf's JSON
    return {
        "timeUnixNano": moment,
        "observedTimeUnixNano": moment,
        "severityNumber": news.severity.otel,
        "severityText": str(news.attributes["severitytext"]),
        "eventName": f"azure.scheduledevents.{news.kind}",
        "body": {"stringValue": tell(news.cloudevent).sentence},
        "attributes": _pairs({**_envelope(news), **_data(news)}),
    }


def _resource(news: News) -> dict[str, Any]:
    observer = news.observer
    return {
        "service.name": PRODUCT,
        "service.version": product_version(),
        "host.name": news.vm,
        "host.id": observer.get("vmId"),
        "cloud.provider": "azure",
        "cloud.platform": "azure.vm",
        "cloud.account.id": news.subscription,
        "cloud.region": observer.get("location"),
        "cloud.availability_zone": observer.get("zone"),
        "cloud.resource_id": observer.get("resourceId"),
    }


def _envelope(news: News) -> dict[str, Any]:
    attributes = news.attributes
    return {
        "cloudevents.event_id": news.cloudevent.id,
        "cloudevents.event_source": attributes["source"],
        "cloudevents.event_spec_version": attributes["specversion"],
        "cloudevents.event_type": news.cloudevent.type,
        "cloudevents.event_subject": attributes["subject"],
        "event.code": news.class_id,
        "client.address": None if news.address is None else str(news.address),
    }


def _data(news: News) -> dict[str, Any]:
    return {f"azure.scheduledevents.{name}": value for name, value in news.data.items()}


def _pairs(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Keys with a value; null values are left out."""
    named = ((str(name), _value(value)) for name, value in values.items() if value is not None)
    return [{"key": name, "value": value} for name, value in named]


def _value(value: Any) -> _Value:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _pairs(value)}}
    return _scalar(value)


def _scalar(value: Any) -> _Value:
    match value:
        case bool():
            return {"boolValue": value}
        case int() if -LARGEST <= value <= LARGEST:
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case None:
            return {}
        case _:
            return {"stringValue": str(value)}


def _open(_: OtlpSettings) -> Format:
    return Format(_encode, CONTENT_TYPE, begins=b"{")


plugin = FormatPlugin(settings=OtlpSettings, open=_open)
