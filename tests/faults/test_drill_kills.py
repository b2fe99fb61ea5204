"""A drill run by the commands, with a kill in the middle: it ends, and nothing reaches Azure."""

import asyncio
import json

import pytest
from support.bridge_process import Stage, stage
from support.judge import told

APPROVALS = {"margin": "100ms", "require": "any"}


def life(at: Stage) -> list[list[str]]:
    """The CloudEvents about drills at each sink, in order, without repeats."""
    stories = []
    for path in at.files:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        unique = {one["id"]: one for one in lines if one["data"].get("drill")}
        stories.append(
            [one["type"].split(".", 2)[2].removesuffix(".v1") for one in unique.values()]
        )
    return stories


async def announced(at: Stage) -> str:
    await at.until(
        lambda: all(told(path, "scheduled") for path in at.files) and at.files, "a drill"
    )
    return told(at.files[0], "scheduled")[0]["subject"]


@pytest.mark.timeout(90)
async def test_a_drill_and_its_votes_survive_a_kill(tmp_path):
    async with stage(tmp_path, quick=True, approvals=APPROVALS) as at:
        await at.start()
        await at.until_said("http.listening")
        drill = asyncio.create_task(
            at.seb("drill", "--type", "Reboot", "--notice", "1h", "--duration", "0s", "--json")
        )
        key = await announced(at)
        await asyncio.sleep(1)  # sinks may know of it before the command has its answer
        await at.kill()
        await at.start()
        await at.until_said("http.listening")
        code, said = await at.seb("approve", key, "--wait", "0s")
        assert code == 0, said
        code, out = await drill
        assert code == 0, out
        report = json.loads(out)
        assert (report["eventId"], report["status"], report["passed"]) == (key, "Completed", True)
        assert {one["outcome"] for one in report["sinks"]} == {"delivered"}
        assert await at.stop() == 0
        assert life(at) == [["scheduled", "approval.recorded", "started", "completed"]] * 2
        assert [one for one in at.simulator.truth if one["what"] == "approval"] == []
