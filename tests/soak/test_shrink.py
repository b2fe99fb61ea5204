"""A failing program becomes shorter for as long as it fails, and for as long as there is time."""

from collections.abc import Sequence

from soak.program import Program, write
from soak.rulings import Breach
from soak.shrink import LEAD, around, shrink, smallest

LONG = write(3, 300)


def never() -> bool:
    return False


def test_the_smallest_part_that_fails_is_found():
    def fails(parts: Sequence[int]) -> bool:
        return {17, 42} <= set(parts)

    assert smallest(range(100), fails, never) == [17, 42]


def test_a_single_cause_is_found_in_few_tries():
    tried: list[int] = []

    def fails(parts: Sequence[int]) -> bool:
        tried.append(len(parts))
        return 61 in parts

    assert smallest(range(64), fails, never) == [61]
    assert len(tried) < 64


def test_what_needs_everything_stays_whole():
    assert smallest([1, 2, 3], lambda parts: len(parts) == 3, never) == [1, 2, 3]


def test_it_stops_when_there_is_no_more_time():
    left = iter([False, False, True, True])
    assert len(smallest(range(64), lambda _: True, lambda: next(left))) == 32


def test_the_time_around_the_first_breach_is_tried_first():
    part = around(LONG, [Breach("later", 250.0), Breach("first", 120.0), Breach("unknown")])
    assert part is not None
    assert part.seconds < LONG.seconds / 2
    first = next(fault for fault in LONG.faults if fault.at >= 120 - LEAD)
    assert part.faults[0].kind == first.kind


def test_a_breach_without_a_time_leaves_the_whole_program():
    assert around(LONG, [Breach("unknown")]) is None


def test_a_program_is_shrunk_to_the_faults_that_make_it_fail():
    guilty = [fault for fault in LONG.faults if 60 < fault.at < 150][::9]
    wanted = {(fault.kind, fault.target) for fault in guilty[:2]}

    def fails(program: Program) -> bool:
        return wanted <= {(fault.kind, fault.target) for fault in program.faults}

    found = shrink(LONG, [Breach("first", guilty[1].at)], fails, never)
    assert {(fault.kind, fault.target) for fault in found.faults} == wanted
    assert len(found.faults) == 2


def test_a_window_that_passes_is_not_used():
    def fails(program: Program) -> bool:
        return len(program.faults) == len(LONG.faults)

    assert shrink(LONG, [Breach("first", 100.0)], fails, never) == LONG
