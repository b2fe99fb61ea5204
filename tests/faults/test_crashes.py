"""Killed at any moment, again and again: nothing is lost, and nothing is invented."""

import asyncio
import random
from pathlib import Path

import pytest
from support.bridge_process import Stage, stage
from support.judge import judge, transitions

SEED = 20261115


class Weather:
    """Many overlapping events: announced, changed, put off, started, completed, canceled.

    Events to cancel are due in an hour, and postponed events only move later. So the real end of
    each follows from what was seen before, however long the bridge was dead.
    """

    def __init__(self, on: Stage, rng: random.Random) -> None:
        self._world = on.world
        self._rng = rng
        self._doomed: dict[str, float] = {}
        self._number = 0

    async def blow(self) -> None:
        while True:
            self._gust()
            await asyncio.sleep(self._rng.uniform(0.02, 0.2))

    def _gust(self) -> None:
        actions = (self._plan, self._fail, self._doom, self._put_off, self._rewrite, self._cancel)
        self._rng.choices(actions, weights=(4, 1, 2, 2, 3, 2))[0]()

    def _name(self) -> str:
        self._number += 1
        return f"event-{self._number}"

    def _plan(self) -> None:
        kind = self._rng.choice(["Reboot", "Redeploy", "Freeze", "Preempt", "Terminate"])
        notice = f"{self._rng.randint(0, 3000)}ms"
        lasts = f"{self._rng.randint(50, 2500)}ms"
        self._world.create(name=self._name(), type=kind, notice=notice, started_for=lasts)

    def _fail(self) -> None:
        lasts = f"{self._rng.randint(50, 2500)}ms"
        self._world.create(name=self._name(), type="Reboot", status="Started", started_for=lasts)

    def _doom(self) -> None:
        name = self._name()
        self._world.create(name=name, type="Redeploy", notice="1h")
        self._doomed[name] = asyncio.get_running_loop().time() + self._rng.uniform(0, 4)

    def _waiting(self) -> list[str]:
        return [e.name for e in self._world.entries.values() if e.status == "Scheduled"]

    def _put_off(self) -> None:
        names = [name for name in self._waiting() if name not in self._doomed]
        if names:
            name = self._rng.choice(names)
            left = self._world.find(name).not_before - self._world.clock()
            later = left.total_seconds() + self._rng.uniform(1, 2)
            self._world.reschedule(name, f"{int(later * 1000)}ms")

    def _rewrite(self) -> None:
        if names := self._waiting():
            self._number += 1
            resources = self._rng.sample(["vm-0", "vm-1", "vm-2"], 2)
            self._world.update(
                self._rng.choice(names),
                description=f"Version {self._number} of what is written here",
                resources=sorted({*resources, "vm-0"}),
            )

    def _cancel(self, *, due: float | None = None) -> None:
        due = due or asyncio.get_running_loop().time()
        for name in [name for name, when in self._doomed.items() if when <= due]:
            del self._doomed[name]
            self._world.cancel(name)

    def clear(self) -> None:
        self._cancel(due=float("inf"))


async def live_through(folder: Path, kills: int, seed: int) -> Stage:
    """Kill and restart in bad weather, then let it clear and stop the bridge in order."""
    rng = random.Random(seed)
    async with stage(folder, quick=True) as at:
        weather = Weather(at, rng)
        blowing = asyncio.create_task(weather.blow())
        for _ in range(kills):
            await at.start()
            if rng.random() < 0.8:  # the others may die before their first request
                await at.polled(1)
            await asyncio.sleep(rng.uniform(0, 1))
            await at.kill()
        blowing.cancel()
        weather.clear()
        await at.start()
        await at.until(lambda: not at.world.entries, "all events to end")
        await at.polled(3)
        assert await at.stop() == 0
    return at


def the_test_was_one(at: Stage, kills: int) -> None:
    """Otherwise the judge had nothing to check."""
    what = {record["what"] for record in at.simulator.truth}
    assert what >= {"scheduled", "updated", "started", "completed", "canceled"}
    assert len({one.process for one in at.shown}) > kills // 2
    assert len(transitions(at.files[0])) > kills


@pytest.mark.timeout(300)
async def test_26_random_kills_of_two_bridges_lose_nothing(tmp_path: Path):
    async def one(seed: int) -> None:
        at = await live_through(tmp_path / f"{seed}", kills=13, seed=seed)
        the_test_was_one(at, 13)
        assert judge(at.simulator.truth, at.shown, at.files) == []

    async with asyncio.TaskGroup() as side_by_side:
        for seed in (SEED, SEED + 1):
            side_by_side.create_task(one(seed))
