"""A CloudEvent as the collector expects it: the event in an envelope; pure."""

import json
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from bridge.plugins import CloudEvent, Format, open_format, read_format
from sinks.splunk.settings import SplunkSettings

_OWN = "splunk-hec"
_SOURCETYPE = "azure:scheduledevents"


def open_envelopes(settings: SplunkSettings) -> Format:
    """The format splunk-hec has its own envelope; any other format gets one here."""
    given = settings.format
    if given is not None and given.type != _OWN:
        form = open_format(settings)
        return replace(form, encode=partial(_wrap, form, settings.placed))
    keys = {} if given is None else given.model_dump(exclude_unset=True, exclude={"type"})
    own = read_format({"type": _OWN, **settings.placed, **keys})
    return open_format(settings.model_copy(update={"format": own}))


def _wrap(form: Format, placed: dict[str, str], cloudevent: CloudEvent) -> bytes:
    said, attributes = form.encode(cloudevent), cloudevent.attributes
    envelope: dict[str, Any] = {
        "time": datetime.fromisoformat(attributes["time"]).timestamp(),
        "host": attributes["observer"],
        "source": attributes["source"],
        "sourcetype": _SOURCETYPE,
        **placed,
    }
    head = json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))
    event = said if "json" in form.content_type else json.dumps(said.decode()).encode()
    return head[:-1].encode() + b',"event":' + event + b"}"
