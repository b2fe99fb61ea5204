"""A CloudEvent, parsed once and read safely: the SIEM formats take their fields from it."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.metadata import version
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from bridge.plugins import CloudEvent, Severity, class_id, kind_of, severity

PRODUCT = "scheduled-events-bridge"
SERVICE = "Azure Scheduled Events"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
LARGEST = 2**63 - 1
_SUBSCRIPTION = re.compile(r"/subscriptions/([^/]+)/")


@cache
def product_version() -> str:
    return version(PRODUCT)


@dataclass(frozen=True, slots=True)
class News:
    """The contents of a CloudEvent. A field that is absent, empty or of another type is None."""

    cloudevent: CloudEvent
    attributes: dict[str, Any]
    data: dict[str, Any]
    observer: dict[str, Any]
    kind: str
    class_id: str
    severity: Severity

    @property
    def family(self) -> str:
        """`transition`, `approval`, `source` or `bridge`."""
        return self.kind.partition(".")[0] if "." in self.kind else "transition"

    @property
    def word(self) -> str:
        """The last word of the kind: `started`, `granted`, `degraded`."""
        return self.kind.rpartition(".")[2]

    @property
    def time(self) -> int:
        """When it was observed, in milliseconds since 1970."""
        return _milliseconds(str(self.attributes["time"])) or 0

    @property
    def vm(self) -> str:
        """The VM that published it."""
        return text(self.observer.get("vm")) or str(self.attributes["observer"])

    @property
    def subscription(self) -> str | None:
        for where in (self.observer.get("resourceId"), self.attributes["source"]):
            if found := _SUBSCRIPTION.search(text(where) or ""):
                return found[1]
        return None

    @property
    def category(self) -> str:
        """`ScheduledEvent/Started`, `Approval/Granted`: the same for all of a type."""
        about = "ScheduledEvent" if self.family == "transition" else self.family.capitalize()
        return f"{about}/{self.word.capitalize()}"

    @property
    def outcome(self) -> str | None:
        """`success` or `failure` of an audited action; the outcome of an approval is its word."""
        return self.text("outcome") if self.family == "bridge" else None

    @property
    def address(self) -> IPv4Address | IPv6Address | None:
        """Where the caller was."""
        try:
            return ip_address((self.text("address") or "").partition("%")[0])
        except ValueError:
            return None

    @property
    def is_drill(self) -> bool:
        return self.data.get("drill") is True

    @property
    def is_cut(self) -> bool:
        """Whether the CloudEvent itself was shortened."""
        return any(name in self.data for name in ("resourcesTruncated", "pendingTruncated"))

    def text(self, name: str) -> str | None:
        return text(self.data.get(name))

    def integer(self, name: str) -> int | None:
        """A whole number of at most 64 bits; fractions are rounded."""
        value = self.data.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return round(value) if -LARGEST <= value <= LARGEST else None

    def names(self, name: str) -> list[str]:
        value = self.data.get(name)
        return [each for each in value if text(each)] if isinstance(value, list) else []

    @property
    def pending(self) -> list[str]:
        """The EventIds that a snapshot lists."""
        listed = self.data.get("pending")
        if not isinstance(listed, list):
            return []
        found = (text(each.get("eventId")) for each in listed if isinstance(each, dict))
        return [each for each in found if each]

    def moment(self, name: str) -> int | None:
        """A time in milliseconds since 1970; None for the year 1, .NET's "no time"."""
        return _milliseconds(self.text(name))


def read(cloudevent: CloudEvent) -> News:
    attributes = cloudevent.envelope
    data = attributes.pop("data")
    about = data.get("observer")
    return News(
        cloudevent=cloudevent,
        attributes=attributes,
        data=data,
        observer=about if isinstance(about, dict) else data,  # the source is about its own VM
        kind=kind_of(cloudevent),
        class_id=class_id(cloudevent),
        severity=severity(cloudevent),
    )


def text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _milliseconds(written: str | None) -> int | None:
    try:
        moment = datetime.fromisoformat(written or "")
    except ValueError:
        return None
    since = (moment.replace(tzinfo=moment.tzinfo or UTC) - _EPOCH) // _MILLISECOND
    return since if since >= 0 else None
