"""The program is a pure function of its seed, and has everything in it."""

from collections import defaultdict
from itertools import pairwise

import pytest
from soak.faults import play
from soak.program import LANES, PLOTS, VMS, Fault, loads, write

LONG = write(7, 600)


def test_a_seed_always_has_the_same_program():
    assert write(7, 600) == LONG
    assert write(8, 600) != LONG


def test_a_program_survives_being_written_to_a_file():
    assert loads(LONG.dumps()) == LONG


def test_ten_minutes_have_every_kind_of_fault_and_every_plot():
    played = {(fault.target, fault.kind) for fault in LONG.faults}
    assert played == {(lane, kind.name) for lane, kinds in LANES.items() for kind in kinds}
    assert {story.plot for story in LONG.stories} == set(PLOTS)


def test_every_fault_can_be_played():
    assert all(callable(play(fault.kind)) for fault in LONG.faults)


@pytest.mark.parametrize("seed", range(5))
def test_the_faults_of_a_lane_do_not_overlap(seed: int):
    lanes: dict[str, list[Fault]] = defaultdict(list)
    for fault in write(seed, 300).faults:
        lanes[fault.target].append(fault)
    for lane in lanes.values():
        for before, after in pairwise(lane):
            assert before.until < after.at
        assert lane[-1].until < 300


def test_a_metadata_fault_never_lasts_so_long_that_empty_answers_would_mean_no_events():
    assert all(f.lasting < 10 for f in LONG.faults if f.kind == "metadata-empty")


def test_events_concern_vms_that_exist_and_a_vote_over_http_concerns_one():
    for story in LONG.stories:
        assert set(story.resources) <= set(VMS)
        assert len(story.resources) == 1 or story.channel != "http"


def test_a_window_has_its_part_of_the_program_from_its_beginning():
    part = LONG.window(100, 160)
    faults = [fault for fault in LONG.faults if 100 <= fault.at < 160]
    assert [fault.kind for fault in part.faults] == [fault.kind for fault in faults]
    assert part.faults[0].at == pytest.approx(faults[0].at - 100)
    assert part.seconds == 60
