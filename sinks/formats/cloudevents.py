"""CloudEvents in their structured JSON format: what all other formats are made from."""

from typing import Literal

from bridge.plugins import CloudEvent, Format, FormatPlugin, FormatSettings

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"


class CloudEventsSettings(FormatSettings):
    """It has no keys of its own."""

    type: Literal["cloudevents"] = "cloudevents"


def _encode(cloudevent: CloudEvent) -> bytes:
    return cloudevent.body


def _open(_: CloudEventsSettings) -> Format:
    return Format(_encode, CONTENT_TYPE, begins=b"{")


plugin = FormatPlugin(settings=CloudEventsSettings, open=_open)
