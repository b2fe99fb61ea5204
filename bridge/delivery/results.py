"""What a sink's results come to: delivered, dead, or to be tried again; pure rules."""

from collections.abc import Sequence

from bridge.journal import Row, Settlement
from bridge.plugins import Delivered, Gone, Rejected, Result, Unavailable

MOST_SAID = 4096
"""How many characters of a note or a reason are kept."""


class Broken(list[Result]):
    """Results of a batch that failed as a whole: the sink must be entered anew."""


def verdict(row: Row, result: Result, now: float, max_age: float) -> Settlement:
    """What became of one CloudEvent; what was tried for longer than *max_age* is dead."""
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
    """Since when a row waits for a sink that stopped: it was tried, or nobody would try it."""
    return row.first if row.first is not None else max(row.recorded, stopped)


def given_up(row: Row, why: str | None) -> Settlement:
    """Too old while its sink was stopped."""
    reason = _too_old(f"the sink is stopped: {why}")[:MOST_SAID]
    return Settlement(row.event.id, "dead", reason, tried=False)


def _too_old(more: str) -> str:
    return f"not delivered within retry.max_age; {more}"


def failures(results: Sequence[Result]) -> list[Unavailable]:
    return [result for result in results if isinstance(result, Unavailable)]


def farewell(results: Sequence[Result]) -> Gone | None:
    """The first word that nothing more is wanted, if there is one."""
    return next((result for result in results if isinstance(result, Gone)), None)
