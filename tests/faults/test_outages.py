"""A sink that fails for a while: kills during the outage lose nothing and reorder nothing."""

import asyncio
import signal
from pathlib import Path

import pytest
from support.bridge_process import Stage, stage
from support.judge import judge, told
from support.until import until

EVENTS = 40


def right_has_all(at: Stage) -> bool:
    path = at.folder / "right.jsonl"
    return path.exists() and len(told(path, "scheduled")) >= EVENTS


@pytest.mark.timeout(60)
async def test_kills_around_the_failures_of_an_outage_lose_nothing(tmp_path: Path):
    async with asyncio.TaskGroup() as side_by_side:
        for number in (1, 2):
            side_by_side.create_task(killed_in_an_outage(tmp_path / f"{number}", number))


async def killed_in_an_outage(folder: Path, number: int) -> None:
    """Die as the first failure is recorded, then at a random moment, and let the sink recover."""
    async with stage(folder, quick=True) as at:
        flag = folder / "down"
        flag.touch()
        for one in range(EVENTS):
            at.world.create(name=f"event-{one}", type="Reboot", notice="1h")
        await at.start(faults={"down": str(flag), "around_settle": number})
        await until(lambda: at.dead, "a death")
        assert at.process.returncode == -signal.SIGKILL
        await at.start(faults={"down": str(flag)})
        await at.until(lambda: right_has_all(at), "what the other sink gets")
        for one in range(0, EVENTS, 4):
            at.world.cancel(f"event-{one}")
        await at.polled(3)
        await at.kill()
        flag.unlink()
        await at.start()
        left = folder / "left.jsonl"
        await at.until(lambda: left.exists() and len(told(left, "canceled")) == 10, "the rest")
        assert await at.stop() == 0
        assert judge(at.simulator.truth, at.shown, at.files) == []
