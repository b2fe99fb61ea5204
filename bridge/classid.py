"""What kind of news a CloudEvent is, in one short word that never changes: syslog, CEF and LEEF."""

import re

from bridge.cloudevent import CloudEvent

LONGEST = 32
"""What syslog has room for as MSGID, in printable ASCII."""

_KIND = re.compile(r"(?:azure\.scheduledevents\.)?(.*?)(?:\.v[0-9]+)?")
_TRANSITIONS = frozenset({"scheduled", "updated", "started", "completed", "canceled"})
_UNFIT = re.compile(r"[^a-z0-9-]")


def kind_of(cloudevent: CloudEvent) -> str:
    """What stands between prefix and version in its type: `started`, `approval.granted`."""
    found = _KIND.fullmatch(cloudevent.type)
    return found[1] if found else cloudevent.type


def class_id(cloudevent: CloudEvent) -> str:
    """`azse.reboot.started` for a transition, else `azse.` and its kind: `azse.source.degraded`."""
    kind = kind_of(cloudevent)
    if kind not in _TRANSITIONS:
        return f"azse.{kind}"[:LONGEST]
    room = LONGEST - len(f"azse..{kind}")
    event_type = _UNFIT.sub("", str(cloudevent.data.get("eventType")).lower())
    return f"azse.{event_type[:room] or 'other'}.{kind}"
