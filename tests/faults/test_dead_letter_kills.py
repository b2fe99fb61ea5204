"""A kill while a dead letter is dropped: it is dropped and audited, or neither."""

import asyncio
import json
import signal
from pathlib import Path

import pytest
from support.bridge_process import Stage, file_sink, stage
from support.judge import told
from support.until import until

REFUSING = {
    "type": "command",
    "argv": ["false"],
    "only": {"types": ["*.scheduled.v1", "*.bridge.*"]},
}


async def letters(at: Stage) -> list[str]:
    """The dead letters of the sink that rejects everything."""
    code, out = await at.seb("dead-letters", "list", "--sink", "right", "--json")
    assert code == 0, at.output()
    return [each["id"] for each in json.loads(out)["deadLetters"]]


def audited(at: Stage) -> list[str]:
    """The dead letters whose drop the other sink was told about."""
    found = [each["data"] for each in told(at.folder / "left.jsonl", "bridge.audited")]
    return [
        each["detail"]["deadLetter"] for each in found if each["action"] == "dead-letter.dropped"
    ]


async def begin(at: Stage, **faults: int) -> None:
    await at.start(faults=faults)
    await at.until_said("http.listening")


async def refused(at: Stage) -> list[str]:
    """Wait until both are dead letters: the event, and the audit of the configuration."""
    await until(lambda: len(at.said("sink.dead_letter")) == 2, "dead letters", at.output)
    return await letters(at)


@pytest.mark.timeout(90)
async def test_a_kill_leaves_no_drop_without_its_audit(tmp_path):
    async with asyncio.TaskGroup() as side_by_side:
        for number in (1, 2):
            side_by_side.create_task(killed_around_its_drop(tmp_path / f"{number}", number))


async def killed_around_its_drop(folder: Path, number: int) -> None:
    sinks = {"left": file_sink(folder, "left"), "right": REFUSING}
    async with stage(folder, quick=True, sinks=sinks) as at:
        at.world.create(name="kept", type="Reboot", notice="1h")
        await begin(at, around_drop=number)
        first, *rest = await refused(at)
        await at.seb("dead-letters", "drop", first)
        await until(lambda: at.dead, "a death")
        assert at.process.returncode == -signal.SIGKILL
        await begin(at)
        left = await letters(at)
        assert set(rest) <= set(left)
        if first not in left:
            await at.until(lambda: first in audited(at), "the audit")
        code, _ = await at.seb("dead-letters", "drop", "--sink", "right", "--yes")
        assert code == 0
        await at.until(lambda: set(audited(at)) >= {first, *rest}, "all audits")
        assert await letters(at) == []
        assert await at.stop() == 0
