"""Our CloudEvents in tests: the kinds, how to make one, and what is true of each."""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema_rs
from support.world import NOON, OBSERVER, scheduled_event

from bridge.core import messages
from bridge.core.cloudevent import CloudEvent, TransitionKind
from bridge.core.envelope import LIMIT
from bridge.core.observer import Observer
from bridge.core.state import Transition

# kind, its schema, and how severe it is when it is about a reboot.
TABLE = [
    ("scheduled", "scheduled-event", 13),
    ("updated", "scheduled-event", 13),
    ("started", "scheduled-event", 14),
    ("completed", "scheduled-event", 9),
    ("canceled", "scheduled-event", 9),
    ("approval.recorded", "approval-outcome", 9),
    ("approval.granted", "approval-outcome", 9),
    ("approval.refused", "approval-outcome", 13),
    ("approval.failed", "approval-outcome", 18),
    ("approval.due", "approval-outcome", 13),
    ("source.degraded", "source", 17),
    ("source.recovered", "source", 9),
    ("source.snapshot", "source", 9),
    ("bridge.audited", "audit", 9),
]
SCHEMAS = Path(__file__).parents[2] / "schemas"
VALIDATORS = {
    schema: jsonschema_rs.validator_for(
        json.loads((SCHEMAS / f"{schema}.v1.schema.json").read_text(encoding="utf-8")),
        validate_formats=True,
    )
    for schema in {row[1] for row in TABLE}
}
ABOUT = messages.SourceReport(NOON, None, None, None, "0.1.0")
ALPHABET = re.compile(r"[A-Za-z0-9\-._~/:()]+")


def refusing_constants(name: str) -> Any:
    raise AssertionError(f"{name} is not JSON")


def check(made: CloudEvent) -> dict[str, Any]:
    """TransitionKind holds for each message, whatever went into it; returns its data."""
    assert len(made.body) <= LIMIT
    envelope = json.loads(made.body.decode("utf-8"), parse_constant=refusing_constants)
    json.dumps(envelope, ensure_ascii=False).encode("utf-8")
    data = envelope.pop("data")
    schema = envelope["dataschema"].removeprefix("urn:scheduled-events-bridge:schema:")
    VALIDATORS[schema.removesuffix(":v1")].validate(data)
    assert envelope["subject"] == envelope["partitionkey"] == made.key
    assert (envelope["id"], envelope["type"]) == (made.id, made.type)
    for name, value in envelope.items():
        assert re.fullmatch("[a-z]{1,20}", name)
        assert name == "severitynumber" or ALPHABET.fullmatch(value), name
    assert CloudEvent.decode(made.body) == made
    return data


def told(happened: Transition, observer: Observer = OBSERVER, now: datetime = NOON) -> CloudEvent:
    return messages.transition(happened, observer, now, 5)


def transition_of(what: TransitionKind, **changes: Any) -> Transition:
    return Transition(what, scheduled_event(**changes), 1, affected=True)
