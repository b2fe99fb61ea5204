"""This VM's vote, cast when the success of a sink means that it is ready."""

from collections.abc import Awaitable, Callable, Sequence

from bridge.common.supervise import attempt
from bridge.core.cloudevent import CloudEvent
from bridge.delivery.results import Broken
from bridge.delivery.rules import may_approve
from bridge.journal import Row
from bridge.plugins import Delivered, Result, Unavailable

CastVote = Callable[[CloudEvent, str], Awaitable[None]]
"""Cast this VM's vote for the named sink; after it returns, the vote is durable."""


async def no_vote(_: CloudEvent, __: str) -> None:
    """Refuse to vote: this bridge does not accept approvals."""
    raise Unavailable("this bridge does not accept approvals")


async def cast(
    rows: Sequence[Row],
    results: Sequence[Result],
    vote: Callable[[CloudEvent], Awaitable[None]],
    timeout: float,
) -> Sequence[Result]:
    """Record this VM's votes before the rows are settled; after a crash, both are repeated.

    The vote has a key, so it counts once.
    """
    if isinstance(results, Broken):
        return results
    pairs = zip(rows, results, strict=True)
    return [await _cast(row, result, vote, timeout) for row, result in pairs]


async def _cast(
    row: Row, result: Result, vote: Callable[[CloudEvent], Awaitable[None]], timeout: float
) -> Result:
    approves = isinstance(result, Delivered) and result.approves
    if not approves or not may_approve(row.event):
        return result
    problem = await attempt(vote(row.event), timeout)
    return problem if isinstance(problem, Unavailable) else result
