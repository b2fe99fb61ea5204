"""From the start of the process to its first poll, beside a program that only polls.

The endpoint reads the CPU time of the process when its first request arrives. The bridge has its
default configuration: the sink stdout, the API, and a journal that exists.
"""

import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench.bridge import command, configure
from bench.figure import NO_BAR, Figure
from bench.processes import process
from bench.servers.metadata import Endpoint, endpoint

ROUNDS = 15
BAR = 1.5


@dataclass
class Taken:
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)


async def first_poll(program: list[str], at: Endpoint, folder: Path, taken: Taken) -> None:
    seen: list[float] = []
    began = time.perf_counter()
    async with process(program, folder / "log") as running:

        def note() -> None:
            if not seen:
                seen.extend((running.cpu, time.perf_counter() - began))

        polls, at.on_poll = at.polls, note
        await at.asked(polls + 1)
        running.check()
    taken.cpu.append(seen[0] * 1e3)
    taken.wall.append(seen[1] * 1e3)


async def figures() -> list[Figure]:
    baseline, bridge = Taken(), Taken()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with endpoint() as at:
            poller = [sys.executable, "-m", "bench.baselines.poller", at.url]
            ours = command(configure(folder, at.url, {}))
            for round_ in range(ROUNDS + 1):
                warm = round_ > 0
                await first_poll(ours, at, folder, bridge if warm else Taken())
                await first_poll(poller, at, folder, baseline if warm else Taken())
    return [
        Figure("start", "first poll", baseline.cpu, bridge.cpu, "ms", BAR),
        Figure("start", "first poll, elapsed", baseline.wall, bridge.wall, "ms", NO_BAR, cpu=False),
    ]
