"""The Splunk sink as its tests use it: settings, and a batch sent."""

from collections.abc import Sequence
from typing import Any

from support.splunk_server import TOKEN, SplunkServer

from bridge.plugins import CloudEvent, Place, Result, Unavailable
from sinks.splunk import SplunkSettings, sink

PLACE = Place({"vm_id": "vm-1"}, sink="siem")


def configured(url: str = "https://splunk.example:8088", **keys: Any) -> SplunkSettings:
    return SplunkSettings.model_validate({"type": "splunk", "url": url, "token": TOKEN} | keys)


async def deliver(
    server: SplunkServer, cloudevents: Sequence[CloudEvent], **keys: Any
) -> list[Result]:
    """One batch; entering may already fail."""
    try:
        async with sink.open(configured(server.url, **keys), PLACE) as send:
            return list(await send(cloudevents))
    except Unavailable as problem:
        return [problem] * len(cloudevents)
