"""What the rules of the judge share: a breach, and which fault explains what."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from soak.ledger import Delivery, Ledger, Played, Row
from soak.settings import LANES


@dataclass(frozen=True)
class Breach:
    """A guarantee that was not kept; `at` is when, in seconds since the start, if that is known."""

    text: str
    at: float = 0.0

    def __str__(self) -> str:
        return f"{self.text} (at {self.at:.1f} s)" if self.at else self.text


AFTERMATH = 3.0
"""How long after a fault a delivery may still lose its acknowledgment: connections are made anew."""
RESTARTS = {"kill", "kill-at-commit", "terminate", "torn-journal"}
PAUSES = {"freeze", "full-disk", "read-only-disk", "slow-disk", "clock-step"}
TIMEOUTS = {
    "silent-network",
    "slow-network",
    "dead-connections",
    "no-answer",
    "node-freeze",
    "server-freeze",
}


def cause_of(fault: Played) -> str:
    """Why a fault makes a bridge send again: kill, timeout or reconnect."""
    if fault.kind in RESTARTS:
        return "kill"
    return "timeout" if fault.kind in TIMEOUTS | PAUSES else "reconnect"


def explains(fault: Played, delivery: Delivery, before: float) -> bool:
    """Whether this fault can be why the sink got again what it had at *before*."""
    lane = LANES[delivery.sink]
    concerns = fault.target == lane or (
        fault.target == delivery.bridge and fault.kind in RESTARTS | PAUSES | {"reload"}
    )
    return concerns and fault.begun - 1 <= delivery.at and _last_loss(fault) >= before


def _last_loss(fault: Played) -> float:
    """Until when a delivery may have lost its acknowledgment: a kill repeats what came before it."""
    if fault.kind in {"kill", "torn-journal"}:
        return fault.begun + 1
    return fault.ended + (1 if fault.kind in RESTARTS else AFTERMATH)


def duplicates(ledger: Ledger) -> Iterator[tuple[Delivery, float, Played | None]]:
    """Each repeated delivery, when the one before it was, and the fault that explains it."""
    last: dict[tuple[str, str, str], float] = {}
    for each in sorted(ledger.deliveries, key=lambda delivery: delivery.at):
        place = (each.sink, each.bridge, each.id)
        if place in last:
            yield each, last[place], _explanation(ledger.faults, each, last[place])
        last[place] = each.at


def _explanation(faults: Iterable[Played], each: Delivery, before: float) -> Played | None:
    fitting = [fault for fault in faults if explains(fault, each, before)]
    return min(fitting, key=lambda fault: abs(fault.begun - each.at), default=None)


def rows_by_id(ledger: Ledger) -> dict[tuple[str, str], list[Row]]:
    """The rows of each bridge and id; several if its journal was torn."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in ledger.rows:
        found[row.bridge, row.id].append(row)
    return found


def torn(ledger: Ledger, bridge: str) -> list[Played]:
    """When this bridge lost its journal."""
    faults = ledger.faults
    return [fault for fault in faults if (fault.kind, fault.target) == ("torn-journal", bridge)]


def moment(ledger: Ledger, text: str) -> float:
    """Seconds since the start, of a time that a clock showed."""
    return (datetime.fromisoformat(text) - datetime.fromisoformat(ledger.started)).total_seconds()
