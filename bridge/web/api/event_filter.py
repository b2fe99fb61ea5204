"""Which scheduled events a caller asks for: the parameters of a query, checked; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bridge.web.problems import ProblemDetails

MOST = 200
_OUTCOMES = {"completed": "Completed", "canceled": "Canceled", "open": None}


@dataclass(frozen=True, slots=True)
class EventFilter:
    """What a caller asks for; None where it asks for nothing in particular."""

    pending: bool | None = None
    drill: bool | None = None
    type: str | None = None
    vm: str | None = None
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int = MOST
    before: int | None = None

    def takes(self, event: Mapping[str, Any]) -> bool:
        """Whether it wants this event, in the form of the API."""
        return (
            (self.drill is None or event["drill"] is self.drill)
            and (self.type is None or str(event["eventType"]).casefold() == self.type)
            and (self.vm is None or self.vm in map(str.casefold, event["resources"] or ()))
            and self._takes_outcome(event["status"])
            and self._takes_time(event["lastChange"])
        )

    def _takes_outcome(self, status: str | None) -> bool:
        if self.outcome is None:
            return True
        if self.outcome == "open":
            return status not in {"Completed", "Canceled"}
        return status == _OUTCOMES[self.outcome]

    def _takes_time(self, changed: str | None) -> bool:
        if self.since is None and self.until is None:
            return True
        if changed is None:
            return False
        at = datetime.fromisoformat(changed)
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)


def read_filter(query: Mapping[str, str]) -> EventFilter:
    """The filter in a query; raises the problem document for a value that makes no sense."""
    outcome = query.get("outcome")
    if outcome is not None and outcome not in _OUTCOMES:
        raise ProblemDetails(400, "outcome must be completed, canceled or open.")
    return EventFilter(
        pending=flag(query, "pending"),
        drill=flag(query, "drill"),
        type=_folded(query, "type"),
        vm=_folded(query, "vm"),
        outcome=outcome,
        since=_moment(query, "from"),
        until=_moment(query, "to"),
        limit=_number(query, "limit", MOST) or MOST,
        before=_number(query, "before", 1 << 62),
    )


def flag(query: Mapping[str, str], name: str) -> bool | None:
    value = query.get(name)
    if value is None:
        return None
    if value.lower() not in {"true", "false"}:
        raise ProblemDetails(400, f"{name} must be true or false.")
    return value.lower() == "true"


def _folded(query: Mapping[str, str], name: str) -> str | None:
    value = query.get(name)
    return value.casefold() if value else None


def _number(query: Mapping[str, str], name: str, most: int) -> int | None:
    value = query.get(name)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) < 20 and 0 < int(value) <= most):
        allowed = f"a number from 1 to {most}" if most == MOST else "the next of an earlier answer"
        raise ProblemDetails(400, f"{name} must be {allowed}.")
    return int(value)


def _moment(query: Mapping[str, str], name: str) -> datetime | None:
    value = query.get(name)
    if not value:
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        found = None
    if found is None:
        raise ProblemDetails(400, f"{name} must be a time, such as 2026-11-15T18:29:47Z.")
    return found if found.tzinfo else found.replace(tzinfo=UTC)
