import json
from datetime import timedelta

import pytest
from support.simulator_tools import START, whats

from bridge.simulator import Simulator
from bridge.simulator.world.truth import Record, Truth


async def test_the_truth_is_on_disk_as_soon_as_it_is_true(tmp_path):
    file = tmp_path / "truth.jsonl"
    async with Simulator(truth=file) as simulator:
        simulator.world.create(type="Reboot", name="r")
        simulator.world.cancel("r")
        simulator.world.fault("empty")
        written = [json.loads(line) for line in file.read_text().splitlines()]
        assert written == simulator.truth
        assert whats(written) == ["scheduled", "canceled", "fault-begun"]


async def test_a_truth_that_cannot_be_written_is_an_error(tmp_path):
    async def play() -> None:
        async with Simulator("reboot", speed=3000, truth=tmp_path / "t") as simulator:
            assert simulator.world.truth._file is not None
            simulator.world.truth._file.close()
            await simulator.done()

    with pytest.raises(ValueError, match="closed file"):
        await play()


def test_records_are_numbered_and_told_as_they_are_made(tmp_path):
    told: list[Record] = []
    truth = Truth(tell=told.append)
    truth.record(START, "scheduled", eventId="A")
    truth.record(START + timedelta(milliseconds=1), "started", eventId="A")
    assert told == truth.records
    assert [(one["seq"], one["at"]) for one in told] == [
        (1, "2026-11-16T12:00:00.000Z"),
        (2, "2026-11-16T12:00:00.001Z"),
    ]
    truth.close()


def test_an_existing_file_is_continued(tmp_path):
    for what in ("enabled", "disabled"):
        truth = Truth(tmp_path / "truth.jsonl")
        truth.record(START, what)
        truth.close()
    lines = (tmp_path / "truth.jsonl").read_text().splitlines()
    assert whats(json.loads(line) for line in lines) == ["enabled", "disabled"]
