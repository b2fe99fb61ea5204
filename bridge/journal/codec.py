"""How the state is written into the journal: tracked scheduled events as JSON."""

import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from bridge.model import ScheduledEvent
from bridge.state import Tracked


def encode_tracked(known: Tracked) -> str:
    """Everything in it is plain but for the times."""
    return json.dumps(asdict(known), default=_time, separators=(",", ":"))


def _time(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"cannot write {type(value).__name__} into the journal")


def decode_tracked(text: str) -> Tracked:
    body: dict[str, Any] = json.loads(text)
    event = body.pop("event")
    not_before = event.pop("not_before")
    resources = tuple(event.pop("resources"))
    missing, since = body.pop("missing_since"), body.pop("since", None)
    return Tracked(
        event=ScheduledEvent(not_before=moment(not_before), resources=resources, **event),
        missing_since=moment(missing),
        since=moment(since),
        **body,
    )


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
