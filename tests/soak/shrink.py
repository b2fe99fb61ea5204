"""Makes a failing program shorter: first its time, then its faults, as long as it still fails."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from soak.program import Program
from soak.rulings import Breach

Fails = Callable[[Program], bool]
Enough = Callable[[], bool]
T = TypeVar("T")
LEAD, TAIL = 45.0, 15.0
"""How much of a program is kept before and after the first breach, in seconds."""


def shrink(program: Program, breaches: Sequence[Breach], fails: Fails, enough: Enough) -> Program:
    """The shortest program found that fails, until there is none or *enough* says so."""
    shorter = around(program, breaches)
    if shorter is not None and not enough() and fails(shorter):
        program = shorter

    def still_fails(faults: Sequence[object]) -> bool:
        return fails(program.with_faults(faults))  # type: ignore[arg-type]

    return program.with_faults(smallest(program.faults, still_fails, enough))


def around(program: Program, breaches: Sequence[Breach]) -> Program | None:
    """The part of it that leads to the first breach whose time is known; None if that is all of it."""
    times = [breach.at for breach in breaches if 0 < breach.at <= program.seconds]
    if not times:
        return None
    start, end = max(0.0, min(times) - LEAD), min(program.seconds, min(times) + TAIL)
    whole = start == 0.0 and end == program.seconds
    return None if whole else program.window(start, end)


def smallest(
    parts: Sequence[T], fails: Callable[[Sequence[T]], bool], enough: Enough
) -> Sequence[T]:
    """Leave out ever smaller portions for as long as what is left fails: delta debugging."""
    portions = 2
    while len(parts) > 1 and not enough():
        size = -(-len(parts) // portions)
        for start in range(0, len(parts), size):
            rest = [*parts[:start], *parts[start + size :]]
            if enough():
                return parts
            if fails(rest):
                parts, portions = rest, max(portions - 1, 2)
                break
        else:
            if portions >= len(parts):
                return parts
            portions = min(len(parts), portions * 2)
    return parts
