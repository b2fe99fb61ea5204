"""How urgent a CloudEvent is, on the scales of syslog and SIEMs, in one table."""

from dataclasses import dataclass

from bridge.core.cloudevent import CloudEvent


@dataclass(frozen=True, slots=True)
class Severity:
    """One row. On syslog's scale lower is worse, on all others higher.

    `syslog` 0 to 7, `cef` 0 to 10, `leef` 1 to 10, `ocsf` 1 (informational) to 6 (fatal); `otel`
    is OpenTelemetry's, which CloudEvents carry as `severitynumber`.
    """

    syslog: int
    cef: int
    leef: int
    ocsf: int
    otel: int


CALM = Severity(syslog=6, cef=1, leef=1, ocsf=1, otel=9)
"""Completed, canceled, granted, recorded, recovered, snapshot, most audits."""
MILD = Severity(syslog=5, cef=3, leef=3, ocsf=2, otel=10)
"""A Freeze, scheduled or started."""
AHEAD = Severity(syslog=4, cef=5, leef=5, ocsf=3, otel=13)
"""A Reboot or Redeploy that was announced, or votes that are still missing."""
REFUSED = Severity(syslog=4, cef=7, leef=7, ocsf=4, otel=13)
"""A vote that does not count, or a token or certificate without permission."""
UNDER_WAY = Severity(syslog=4, cef=7, leef=7, ocsf=4, otel=14)
"""A Reboot or Redeploy that has started."""
BLIND = Severity(syslog=4, cef=5, leef=5, ocsf=3, otel=17)
"""The metadata service gives no usable answer."""
FINAL = Severity(syslog=3, cef=8, leef=8, ocsf=4, otel=17)
"""A Preempt or Terminate, a vote that was forged or replayed, or something that was lost."""
TOO_LATE = Severity(syslog=2, cef=9, leef=9, ocsf=5, otel=18)
"""Started without having been announced, or an approval that did not reach Azure in time."""

_USUAL = (TOO_LATE, FINAL, UNDER_WAY, AHEAD, MILD, CALM)
_OF_ITS_OWN = {
    ("approval.refused", REFUSED.otel): REFUSED,
    ("bridge.audited", REFUSED.otel): REFUSED,
    ("source.degraded", BLIND.otel): BLIND,
}


def severity(cloudevent: CloudEvent) -> Severity:
    """Its row in the table, by its kind and its published `severitynumber`."""
    number = cloudevent.attributes["severitynumber"]
    own = _OF_ITS_OWN.get((cloudevent.kind, number))
    return own or next((row for row in _USUAL if number >= row.otel), CALM)
