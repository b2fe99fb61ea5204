"""Signals: an orderly stop, an impatient one, and one process for each state directory."""

import json
import signal
from pathlib import Path

import pytest
from support.bridge_process import Stage, file_sink, stage
from support.judge import bodies, judge, told


def dead_sink(folder: Path) -> dict[str, object]:
    """A file below something that is not a directory; it works once that is removed."""
    (folder / "blocked").write_text("in the way")
    return file_sink(folder / "blocked", "right")


async def with_a_dead_sink(at: Stage) -> None:
    at.world.create(name="kept", type="Reboot", notice="1h", started_for=None)
    await at.start()
    await at.until_said("sink.unavailable")
    await at.until(lambda: at.files and told(at.files[0], "scheduled"), "the living sink")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_stop_drains_the_sinks_and_ends_with_0(tmp_path: Path, number: signal.Signals):
    async with stage(tmp_path) as at:
        for n in range(50):
            at.world.create(name=f"event-{n}", type="Freeze", notice="1h")
        await at.start()
        await at.polled(2)
        at.signal(number)
        assert await at.ended() == 0
        assert at.said("bridge.stopped")[0]["undelivered"] == 0
        assert [len(told(path, "scheduled")) for path in at.files] == [50, 50]


async def test_the_next_process_delivers_what_a_dead_sink_did_not_get(tmp_path: Path):
    sinks = {"left": file_sink(tmp_path, "left"), "right": dead_sink(tmp_path)}
    async with stage(tmp_path, sinks=sinks, stop_grace="500ms") as at:
        await with_a_dead_sink(at)
        at.world.start("kept")
        await at.polled(2)
        assert await at.stop() == 0
        assert at.said("bridge.stopped")[0]["undelivered"] > 0
        assert bodies(at.files[0])
        (tmp_path / "blocked").unlink()
        await at.start()
        at.world.complete("kept")
        await at.polled(3)
        assert await at.stop() == 0
        assert at.said("bridge.stopped")[0]["undelivered"] == 0
        assert judge(at.simulator.truth, at.shown, at.files) == []


async def test_the_second_signal_ends_it_immediately(tmp_path: Path):
    sinks = {"left": file_sink(tmp_path, "left"), "right": dead_sink(tmp_path)}
    async with stage(tmp_path, sinks=sinks, stop_grace="10m") as at:
        await with_a_dead_sink(at)
        at.signal(signal.SIGTERM)
        await at.until_said("bridge.stopping")
        at.signal(signal.SIGTERM)
        assert await at.ended() == -signal.SIGTERM


async def test_once_exits_with_1_when_something_is_left(tmp_path: Path):
    sinks = {"left": file_sink(tmp_path, "left"), "right": dead_sink(tmp_path)}
    async with stage(tmp_path, sinks=sinks, stop_grace="200ms") as at:
        at.world.create(name="kept", type="Reboot", notice="1h")
        assert await at.once() == 1
        assert at.said("bridge.undelivered")
        (tmp_path / "blocked").unlink()
        assert await at.once() == 0
        assert [len(told(path, "scheduled")) for path in at.files] == [1, 1]


async def test_a_second_process_on_the_same_directory_is_refused_in_a_sentence(tmp_path: Path):
    async with stage(tmp_path) as at:
        await at.start()
        await at.polled(1)
        code, said = await at.beside()
        assert code == 1
        [failed] = [json.loads(line) for line in said.splitlines() if "bridge.failed" in line]
        sentence = failed["error"]
        assert "already running" in sentence
        assert str(at.process.pid) in sentence
        assert str(at.state_dir) in sentence
        assert "Traceback" not in said
        await at.polled(2)
        assert await at.stop() == 0, "the first one did not mind"
