"""A sink that has to stop: it reports it and loses nothing, across kills, reloads and restarts."""

import asyncio
import json
import signal
from pathlib import Path

from support.bridge_process import Stage, stage
from support.judge import told
from support.until import until


def flag(at: Stage) -> Path:
    return at.folder / "unsubscribed"


async def begin(at: Stage, **faults: int) -> None:
    flag(at).touch()
    at.world.create(name="kept", type="Reboot", notice="1h")
    await at.start(faults={"gone": str(flag(at)), **faults})


def has(at: Stage, name: str) -> bool:
    path = at.folder / f"{name}.jsonl"
    return path.exists() and bool(told(path, "scheduled"))


async def test_it_stops_with_one_log_line_delays_no_other_sink_and_resumes_after_a_reload(tmp_path):
    async with stage(tmp_path, quick=True) as at:
        await begin(at)
        await at.until_said("sink.stopped")
        await at.until(lambda: has(at, "right"), "what the other sink gets")
        at.world.create(name="more", type="Redeploy", notice="1h")
        await at.polled(3)
        [line] = at.said("sink.stopped")
        assert (line["level"], line["sink"], line["error"]) == (
            "error",
            "left",
            "it was unsubscribed",
        )
        assert not has(at, "left")
        flag(at).unlink()
        at.signal(signal.SIGHUP)
        left = at.folder / "left.jsonl"
        await at.until(lambda: has(at, "left") and len(told(left, "scheduled")) == 2, "the rest")
        assert await at.stop() == 0


async def test_a_kill_around_the_recording_of_the_stop_loses_nothing(tmp_path):
    async with asyncio.TaskGroup() as side_by_side:
        for number in (1, 2):
            side_by_side.create_task(killed_around_its_note(tmp_path / f"{number}", number))


async def killed_around_its_note(folder: Path, number: int) -> None:
    async with stage(folder, quick=True) as at:
        await begin(at, around_settle=number)
        await until(lambda: at.dead, "a death")
        assert at.process.returncode == -signal.SIGKILL
        flag(at).unlink()
        await at.start()
        await at.until(lambda: has(at, "left") and has(at, "right"), "all of it")
        assert await at.stop() == 0
        [event] = told(at.folder / "left.jsonl", "scheduled")
        assert json.dumps(event) == json.dumps(told(at.folder / "right.jsonl", "scheduled")[0])
