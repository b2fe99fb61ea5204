"""Killed at each place where it could hurt: around every commit, and between sink and journal."""

import asyncio
import signal
from pathlib import Path

import pytest
from support.bridge_process import Stage, stage
from support.judge import bodies, judge

AT_ONCE = 8
"""How many bridges are killed in parallel, each under its own simulator."""
MOST = 60
"""More places than a short story has."""


async def short_story(at: Stage, **fault: int) -> bool:
    """One event completes, another is canceled; return whether the fault occurred.

    After a kill, a process without faults follows.
    """
    killed = 0

    async def again() -> None:
        nonlocal killed
        assert at.process.returncode == -signal.SIGKILL, at.output()
        killed += 1
        await at.start()
        await at.polled()

    async def seen() -> None:
        await at.polled()
        if at.dead:
            await again()

    await at.start(faults=fault)
    at.world.create(name="kept", type="Reboot", notice="1h", started_for=None)
    at.world.create(name="dropped", type="Redeploy", notice="1h")
    await seen()
    at.world.update("kept", description="Something else is written here")
    await seen()
    at.world.start("kept")
    at.world.cancel("dropped")
    await seen()
    at.world.complete("kept")
    await seen()
    if await at.stop() != 0:
        await again()
        assert await at.stop() == 0
    return bool(killed)


async def attempt(folder: Path, fault: str, number: int) -> bool:
    async with stage(folder / f"{fault}-{number}", quick=True) as at:
        met = await short_story(at, **{fault: number})
        complaints = judge(at.simulator.truth, at.shown, at.files)
        assert complaints == [], f"killed at {fault} {number}"
    return met


async def sweep(folder: Path, fault: str) -> int:
    """Continue until a run finishes without its fault; return how many runs had it."""
    for number in range(1, MOST, AT_ONCE):
        numbers = range(number, number + AT_ONCE)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(attempt(folder, fault, n)) for n in numbers]
        met = [task.result() for task in tasks]
        if not all(met):
            return number + met.index(False) - 1
    raise AssertionError(f"there is no end of places for {fault}")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", ["before_commit", "after_commit"])
async def test_a_kill_at_any_commit_loses_nothing(tmp_path: Path, fault: str):
    assert await sweep(tmp_path, fault) > 10


@pytest.mark.timeout(300)
async def test_a_kill_between_the_sink_and_the_journal_repeats_and_loses_nothing(tmp_path: Path):
    assert await sweep(tmp_path, "after_send") >= 8


@pytest.mark.parametrize("number", [1, 3])
async def test_a_kill_in_the_middle_of_a_line_leaves_no_partial_line(tmp_path: Path, number: int):
    assert await attempt(tmp_path, "half_line", number)


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_a_kill_while_the_tables_are_created_is_repaired_at_the_next_start(
    tmp_path: Path, number: int
):
    assert await attempt(tmp_path, "around_migration", number)


async def test_what_was_sent_but_not_recorded_is_sent_again_under_the_same_id(tmp_path: Path):
    async with stage(tmp_path, quick=True) as at:
        assert await short_story(at, after_send=1)
        repeated = [len(bodies(path)) - len(set(bodies(path))) for path in at.files]
        assert sum(repeated) >= 1
