"""Turns a sink's results into delivered, dead or retry; pure."""

from collections.abc import Sequence

from bridge.journal import Row, Settlement
from bridge.plugins import Delivered, Gone, Rejected, Result, Unavailable

MOST_SAID = 4096
"""How many characters of a note or a reason are kept."""


class Broken(list[Result]):
    """Results of a batch that failed as a whole: the sink must reconnect."""


def verdict(row: Row, result: Result, now: float, max_age: float) -> Settlement:
    """The result for one CloudEvent; after *max_age* of attempts it is dead."""
    if result is None or isinstance(result, Delivered):
        note = result.note[:MOST_SAID] if result and result.note else None
        return Settlement(row.event.id, "delivered", note=note)
    reason = str(result)[:MOST_SAID] or type(result).__name__
    if isinstance(result, Rejected):
        return Settlement(row.event.id, "dead", reason)
    first = now if row.first is None else row.first
    if now - first < max_age:
        return Settlement(row.event.id, None, reason)
    return Settlement(row.event.id, "dead", _too_old(f"last: {reason}"))


def began(row: Row, stopped: float) -> float:
    """Since when a row waits for a stopped sink: since its first attempt, else since the stop."""
    return row.first if row.first is not None else max(row.recorded, stopped)


def given_up(row: Row, why: str | None) -> Settlement:
    """The result for a row that became too old while its sink was stopped."""
    reason = _too_old(f"the sink is stopped: {why}")[:MOST_SAID]
    return Settlement(row.event.id, "dead", reason, tried=False)


def _too_old(more: str) -> str:
    return f"not delivered within retry.max_age; {more}"


def failures(results: Sequence[Result]) -> list[Unavailable]:
    return [result for result in results if isinstance(result, Unavailable)]


def first_gone(results: Sequence[Result]) -> Gone | None:
    """The first result that asks the bridge to stop sending, if there is one."""
    return next((result for result in results if isinstance(result, Gone)), None)
