"""CloudEvents to send in tests: valid, structured, numbered."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from bridge.core.cloudevent import CloudEvent

LARGEST = 65536
STATE = "a3c1" * 16
HOSTILE = (
    'nul \x00, quotes " \' \\ " \\n, lines \n \r\n \x0b \x0c \x1c \x85 \u2028 \u2029, '
    "bom \ufeff, right to left \u202e abc \u202c, combining e\u0301\u0301\u0301, "
    "\U0001f469\u200d\U0001f692, last \U0010ffff, </script>, ${HOME}, {subject}, %s"
)


def make(n: int = 1, *, key: str | None = None, size: int | None = None, **data: Any) -> CloudEvent:
    """The *n*-th CloudEvent, about a scheduled event of its own unless *key* names another.

    *size* fills the description until the body has exactly that many bytes; *data* replaces fields.
    """
    key = key or str(uuid5(NAMESPACE_OID, f"scheduled event {n}")).upper()
    made = _encode(n, key, data)
    if size is not None:
        room = size - len(made.body) + len(made.data["description"])
        made = _encode(n, key, {**data, "description": "x" * room})
    return made


def batch(count: int, *, first: int = 1, **data: Any) -> list[CloudEvent]:
    """As the bridge hands them to a sink: no two with the same key."""
    return [make(n, **data) for n in range(first, first + count)]


def _encode(n: int, key: str, data: dict[str, Any]) -> CloudEvent:
    envelope: dict[str, Any] = {
        "specversion": "1.0",
        "type": "azure.scheduledevents.scheduled.v1",
        "source": "/subscriptions/0b1f6471/resourcegroups/shop/scheduledevents",
        "id": str(uuid5(NAMESPACE_OID, f"CloudEvent {n} of {key}")),
        "time": "2026-11-15T18:14:48Z",
        "subject": key,
        "datacontenttype": "application/json",
        "dataschema": "urn:scheduled-events-bridge:schema:scheduled-event:v1",
        "partitionkey": key,
        "correlationid": key,
        "observer": "FrontEnd_IN_0",
        "severitynumber": 13,
        "severitytext": "WARN",
        "data": _data(key) | data,
    }
    text = json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))
    return CloudEvent(envelope["id"], envelope["type"], key, text.encode())


def _data(key: str) -> dict[str, Any]:
    return {
        "eventId": key,
        "eventType": "Reboot",
        "status": "Scheduled",
        "rank": 1,
        "life": 1,
        "previousStatus": None,
        "resourceType": "VirtualMachine",
        "resources": ["FrontEnd_IN_0", "BackEnd_IN_0"],
        "notBefore": "2026-11-15T18:29:47Z",
        "approveBy": "2026-11-15T18:29:42Z",
        "noticeSeconds": 899.4,
        "description": "Virtual machine is being restarted as requested by authorized user.",
        "eventSource": "User",
        "durationInSeconds": -1,
        "approvable": True,
        "terminal": False,
        "inferred": False,
        "drill": False,
        "changes": {},
        "documentIncarnation": 5,
        "state": STATE,
        "observer": {
            "vm": "FrontEnd_IN_0",
            "vmId": "02aab8a4-74ef-476e-8182-f6d2ba4166a6",
            "affected": True,
            "resourceId": None,
            "location": "westeurope",
            "zone": None,
            "scaleSet": None,
            "hostname": "frontend-0",
            "node": None,
            "tags": {},
            "labels": {},
        },
    }


def unbound(named: Mapping[str, str], content_type: str, payload: str) -> dict[str, Any]:
    """The envelope of what came in binary mode: attributes beside the data, all of them text."""
    found: dict[str, Any] = {**named, "datacontenttype": content_type}
    if "severitynumber" in found:
        found["severitynumber"] = int(found["severitynumber"])
    return found | {"data": json.loads(payload)}
