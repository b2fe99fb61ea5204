"""A storm of 10,000 transitions in one document, for each sink, beside the raw client.

The CPU time counts from before the answer until everything is delivered and settled. The baseline
parses the document, commits once, and sends the bytes that the bridge sent in the warm-up round.
"""

from collections.abc import Iterator
from pathlib import Path

from bench.figure import NO_BAR, Figure
from bench.runs import Taken, baseline_run, bridge_run, cpu_times, record, storm, wall_times
from bench.servers.sinks import SINKS, Servers, servers

STORMED = tuple(sink for sink in SINKS if sink != "command")
"""10,000 processes one after the other would measure the operating system."""
COUNT, WARM_UP = 10_000, 500
ROUNDS = 3
BARS = {"file": 5.0}
BAR = 4.0


async def bridge_storm(far: Servers, sink: str, count: int) -> tuple[Taken, Path]:
    """What the bridge took, and a file with what arrived."""
    async with far.channel(sink) as channel, bridge_run(far.folder, {sink: channel}) as run:
        taken = await storm(run, count)
        return taken, record(channel, far.folder)


async def baseline_storm(far: Servers, sink: str, count: int, bodies: Path) -> Taken:
    async with far.channel(sink) as channel, baseline_run(far.folder, channel, bodies) as run:
        return await storm(run, count)


async def compare(far: Servers, sink: str) -> Iterator[Figure]:
    _, bodies = await bridge_storm(far, sink, WARM_UP)
    await baseline_storm(far, sink, WARM_UP, bodies)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append((await bridge_storm(far, sink, COUNT))[0])
        theirs.append(await baseline_storm(far, sink, COUNT, bodies))
    return shown(sink, ours, theirs)


def shown(sink: str, ours: list[Taken], theirs: list[Taken]) -> Iterator[Figure]:
    bar = BARS.get(sink, BAR)
    baseline, bridge = cpu_times(theirs, ours)
    yield Figure("storm", f"{sink}, {COUNT:,} transitions", baseline, bridge, "ms", bar)
    baseline, bridge = wall_times(theirs, ours)
    yield Figure("storm", f"{sink}, elapsed", baseline, bridge, "ms", NO_BAR, cpu=False)


async def figures() -> list[Figure]:
    async with servers() as far:
        return [figure for sink in STORMED for figure in await compare(far, sink)]
