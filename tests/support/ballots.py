"""Votes and approvals for tests, with typical values by default."""

import json
from typing import Any

from support.world import ME, NOON, OTHER, scheduled_event

from bridge.plugins import Delivery
from bridge.policy.votes import Announced, Vote


def cast(**changes: Any) -> Vote:
    """This VM's own service approves the usual event at noon."""
    event = scheduled_event()
    usual: dict[str, Any] = {
        "event_key": event.key,
        "life": 1,
        "approver": "orders",
        "resource": ME,
        "decision": "approve",
        "approval": "a-1",
        "key": "/orders\x1fa-1",
        "at": NOON,
        "via": "bus",
        "about": Announced("Reboot", (ME, OTHER), event.not_before),
    }
    return Vote(**{**usual, **changes})


def delivery(event_id: str | None = None, **said: Any) -> Delivery:
    """A published approval as plain JSON; transport keys begin with an underscore."""
    transport = {name[1:]: said.pop(name) for name in list(said) if name.startswith("_")}
    body = {**({"eventId": event_id} if event_id else {}), **said}
    return Delivery(json.dumps(body).encode(), **transport)
