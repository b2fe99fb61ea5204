"""Several sinks of one bridge: four at the same time, and three while a fourth does not answer.

Four sinks are compared with the sum of the CPU time of each alone. Three sinks beside a frozen one
are compared with the same three without it, by the rate at which each delivers.
"""

from contextlib import AsyncExitStack

from bench.figure import NO_BAR, Figure
from bench.groups.storm import WARM_UP, bridge_storm
from bench.runs import Taken, bridge_run, cpu_times, storm, wall_times
from bench.servers.receivers import webhook
from bench.servers.sinks import Servers, servers

COUNT, ROUNDS = 3000, 3
FROZEN_ROUNDS = 5
FOUR = ("kafka", "mqtt", "webhook", "syslog")
THREE = ("kafka", "mqtt", "syslog")
TOGETHER, BESIDE_FROZEN = 1.1, 0.9


async def together(far: Servers, count: int) -> Taken:
    async with AsyncExitStack() as stack:
        channels = {sink: await stack.enter_async_context(far.channel(sink)) for sink in FOUR}
        return await storm(await stack.enter_async_context(bridge_run(far.folder, channels)), count)


async def alone(far: Servers, count: int) -> Taken:
    taken = [(await bridge_storm(far, sink, count))[0] for sink in FOUR]
    return Taken(sum(each.cpu for each in taken), sum(each.wall for each in taken))


async def rates(far: Servers, count: int, *, frozen: bool) -> dict[str, float]:
    """CloudEvents a second at each of the three, from the answer to the last arrival."""
    async with AsyncExitStack() as stack:
        channels = {sink: await stack.enter_async_context(far.channel(sink)) for sink in THREE}
        stuck = [await stack.enter_async_context(webhook(lambda: True))] if frozen else []
        run = await stack.enter_async_context(bridge_run(far.folder, channels, stuck))
        await storm(run, count)
        ends = {sink: channel.tally.times[count - 1] for sink, channel in channels.items()}
        return {sink: count / (end - run.at.answered) for sink, end in ends.items()}


async def figures() -> list[Figure]:
    async with servers(FOUR) as far:
        await together(far, WARM_UP)
        four, each, with_, without = [], [], [], []
        for _ in range(ROUNDS):
            four.append(await together(far, COUNT))
            each.append(await alone(far, COUNT))
        for _ in range(FROZEN_ROUNDS):
            with_.append(await rates(far, COUNT, frozen=True))
            without.append(await rates(far, COUNT, frozen=False))
    cpu, cpu_four = cpu_times(each, four)
    wall, wall_four = wall_times(each, four)
    return [
        Figure("fanout", f"four sinks, {COUNT:,} transitions", cpu, cpu_four, "ms", TOGETHER),
        Figure("fanout", "four sinks, elapsed", wall, wall_four, "ms", NO_BAR, cpu=False),
        *(
            Figure(
                "fanout",
                f"{sink} beside a frozen sink",
                [rate[sink] for rate in without],
                [rate[sink] for rate in with_],
                "/s",
                BESIDE_FROZEN,
                at_least=True,
                cpu=False,
            )
            for sink in THREE
        ),
    ]
