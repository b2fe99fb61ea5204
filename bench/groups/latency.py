"""From an answer with one change until its CloudEvent has arrived, for each sink.

The endpoint holds each request until the next document is there, so the poll interval does not
count. All programs run at the same time, wait for their answers and take turns. The receiver notes
when a message arrives.
"""

import asyncio
import itertools
import statistics
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from bench.figure import NO_BAR, Figure
from bench.groups.storm import bridge_storm
from bench.runs import Run, baseline_run, bridge_run, lap, ready
from bench.servers.sinks import SINKS, Servers, servers

LAPS, FIRST, PARTS = 201, 9, 4
"""Laps to count, laps to warm up with, and into how many parts they are cut to show a spread."""
BODIES = 30
"""How many CloudEvents the baseline has to send, again and again."""
SETTLED = 0.01
"""Seconds after a lap, in which the program settles what arrived."""
P50, P99 = 3.0, 5.0


@dataclass(slots=True)
class Laps:
    """What each lap took, and the CPU time of the program at the start of each."""

    run: Run
    taken: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    async def next(self) -> None:
        self.cpu.append(await ready(self.run))
        self.taken.append(await lap(self.run, len(self.taken)))
        await asyncio.sleep(SETTLED)

    @property
    def medians(self) -> list[float]:
        """In milliseconds, for each part."""
        counted = [seconds * 1e3 for seconds in self.taken[FIRST:]]
        return [statistics.median(part) for part in _cut(counted)]

    @property
    def slowest(self) -> list[float]:
        """The slowest of a hundred is one number: no part has a hundred."""
        return [statistics.quantiles(self.taken[FIRST:], n=100)[98] * 1e3]

    @property
    def cpu_times(self) -> list[float]:
        """Of one lap with its poll, in milliseconds, for each part."""
        each = [(end - start) * 1e3 for start, end in itertools.pairwise(self.cpu[FIRST:])]
        return [statistics.fmean(part) for part in _cut(each)]


def _cut(samples: list[float]) -> list[list[float]]:
    size = len(samples) // PARTS
    return [samples[place * size : (place + 1) * size] for place in range(PARTS)]


async def start(stack: AsyncExitStack, far: Servers, sink: str) -> tuple[Laps, Laps]:
    """The bridge and its baseline."""
    _, bodies = await bridge_storm(far, sink, BODIES)
    mine = await stack.enter_async_context(far.channel(sink))
    other = await stack.enter_async_context(far.channel(sink))
    bridge = await stack.enter_async_context(bridge_run(far.folder, {sink: mine}))
    baseline = await stack.enter_async_context(baseline_run(far.folder, other, bodies))
    return Laps(bridge), Laps(baseline)


def shown(sink: str, theirs: Laps, ours: Laps) -> Iterator[Figure]:
    name = f"{sink}, p50"
    yield Figure("latency", name, theirs.medians, ours.medians, "ms", P50, cpu=False)
    name = f"{sink}, p99"
    yield Figure("latency", name, theirs.slowest, ours.slowest, "ms", P99, cpu=False)
    yield Figure("latency", f"{sink}, CPU", theirs.cpu_times, ours.cpu_times, "ms", NO_BAR)


async def figures() -> list[Figure]:
    async with servers() as far, AsyncExitStack() as stack:
        pairs = {sink: await start(stack, far, sink) for sink in SINKS}
        for _ in range(FIRST + LAPS):
            for pair in pairs.values():
                for side in pair:
                    await side.next()
        return [
            each for sink, (ours, theirs) in pairs.items() for each in shown(sink, theirs, ours)
        ]
