"""What the bridge takes when nothing happens: memory, CPU time for each poll, and wakeups.

All programs run at the same time and poll every second, as the bridge does by default. For Kafka
and MQTT, the client of the baseline is connected too.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from bench.bridge import bridge
from bench.figure import Figure
from bench.processes import Process, process
from bench.servers.metadata import Endpoint, endpoint
from bench.servers.sinks import Servers, servers

SETTLED, WINDOW, WINDOWS = 5.0, 10.0, 4
"""Seconds before the first window, seconds of each, and how many; the first does not count."""
MEMORY, CPU, WAKEUPS = 1.5, 1.25, 1.2
KINDS = ("plain", "kafka", "mqtt")


@dataclass(slots=True)
class Watched:
    """One program, and what it took in each window."""

    running: Process
    at: Endpoint
    memory: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    wakeups: list[float] = field(default_factory=list)

    async def window(self) -> None:
        polls, cpu, wakeups = self.at.polls, self.running.cpu, self.running.wakeups
        await asyncio.sleep(WINDOW)
        self.running.check()
        polled = self.at.polls - polls
        self.cpu.append((self.running.cpu - cpu) * 1e6 / polled)
        self.wakeups.append((self.running.wakeups - wakeups) / polled)
        self.memory.append(self.running.memory)


async def start(stack: AsyncExitStack, far: Servers, kind: str) -> tuple[Watched, Watched]:
    """The baseline and the bridge."""
    sink = None
    if kind != "plain":
        sink = (await stack.enter_async_context(far.channel(kind))).settings
    place = far.folder / kind
    place.mkdir()
    theirs, ours = [await stack.enter_async_context(endpoint()) for _ in range(2)]
    poller = [sys.executable, "-m", "bench.baselines.poller", theirs.url]
    given = [json.dumps(sink)] if sink else []
    baseline = await stack.enter_async_context(process([*poller, *given], place / "log"))
    sinks = {kind: sink} if sink else {}
    mine = await stack.enter_async_context(bridge(place, ours.url, sinks))
    return Watched(baseline, theirs), Watched(mine, ours)


def shown(kind: str, baseline: Watched, bridge: Watched) -> Iterator[Figure]:
    name = "" if kind == "plain" else f", {kind} connected"
    for title, unit, bar, what in (
        ("memory", "MiB", MEMORY, "memory"),
        ("CPU time for each poll", "µs", CPU, "cpu"),
        ("wakeups for each poll", "", WAKEUPS, "wakeups"),
    ):
        theirs, ours = (getattr(side, what)[1:] for side in (baseline, bridge))
        yield Figure("idle", f"{title}{name}", theirs, ours, unit, bar)


async def figures() -> list[Figure]:
    async with servers(("kafka", "mqtt")) as far, AsyncExitStack() as stack:
        pairs = {kind: await start(stack, far, kind) for kind in KINDS}
        await asyncio.sleep(SETTLED)
        for _ in range(WINDOWS):
            await asyncio.gather(*(side.window() for pair in pairs.values() for side in pair))
        return [figure for kind, pair in pairs.items() for figure in shown(kind, *pair)]
