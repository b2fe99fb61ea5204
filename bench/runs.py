"""One run of the bridge or of a baseline: started, given documents, measured and stopped."""

import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.bridge import TRANSITIONS, bridge
from bench.processes import Process, process
from bench.servers.metadata import Endpoint, endpoint, event
from bench.servers.tally import Channel


@dataclass(frozen=True, slots=True)
class Run:
    """A program that has polled once, is connected, and waits for an answer of its endpoint."""

    running: Process
    at: Endpoint
    channels: Sequence[Channel]


@dataclass(frozen=True, slots=True)
class Taken:
    """What forwarding took, in seconds; `wall` is until the last one arrived."""

    cpu: float
    wall: float


def cpu_times(*sides: Sequence[Taken]) -> Iterator[list[float]]:
    """The CPU times of each side, in milliseconds."""
    return ([taken.cpu * 1e3 for taken in side] for side in sides)


def wall_times(*sides: Sequence[Taken]) -> Iterator[list[float]]:
    return ([taken.wall * 1e3 for taken in side] for side in sides)


@contextlib.asynccontextmanager
async def bridge_run(
    folder: Path, channels: Mapping[str, Channel], idle: Sequence[Channel] = ()
) -> AsyncGenerator[Run]:
    """The bridge with one sink for each channel; nothing is expected at the *idle* ones."""
    place = Path(tempfile.mkdtemp(dir=folder))
    every = [*channels.items(), *((f"idle-{n}", each) for n, each in enumerate(idle))]
    sinks = {name: {**each.settings, "only": TRANSITIONS} for name, each in every}
    output = next((each.output for each in channels.values() if each.output), None)
    async with (
        endpoint() as at,
        bridge(place, at.url, sinks, output, source={"poll_interval": "200ms"}) as one,
    ):
        yield await _waiting(Run(one, at, list(channels.values())))


@contextlib.asynccontextmanager
async def baseline_run(folder: Path, channel: Channel, bodies: Path) -> AsyncGenerator[Run]:
    place = Path(tempfile.mkdtemp(dir=folder))
    program = [sys.executable, "-m", "bench.baselines.forwarder"]
    async with endpoint() as at:
        given = [at.url, json.dumps(channel.settings), str(bodies), str(place)]
        async with process([*program, *given], place / "log", channel.output) as one:
            yield await _waiting(Run(one, at, [channel]))


async def _waiting(run: Run) -> Run:
    run.at.holding = True
    await run.at.asked(2)
    await run.running.idle()
    return run


async def storm(run: Run, count: int) -> Taken:
    """Serve *count* new events in one document, and wait until all are delivered and settled."""
    before = run.running.cpu
    run.at.serve(event(number) for number in range(count))
    check = run.running.check
    last = [await channel.tally.reached(count, check, 120) for channel in run.channels]
    return Taken(await run.running.idle() - before, max(last) - run.at.answered)


async def ready(run: Run) -> float:
    """Wait until it polls again, so that it has settled all before; its CPU time so far."""
    while not run.at.waiting:
        run.running.check()
        await asyncio.sleep(0.005)
    return run.running.cpu


async def lap(run: Run, number: int) -> float:
    """Serve the next of a row of documents with one transition each; seconds until it arrived.

    An event appears, starts and is gone; then comes the next event.
    """
    turn, stage = divmod(number, 3)
    status = ("Scheduled", "Started")
    arrived = len(run.channels[0].tally.times)
    run.at.serve([event(turn, status[stage])] if stage < 2 else [])
    at = await run.channels[0].tally.reached(arrived + 1, run.running.check)
    return at - run.at.answered


def record(channel: Channel, folder: Path) -> Path:
    """Write down what arrived, for a baseline to send the same bytes."""
    file = Path(tempfile.mkdtemp(dir=folder)) / "bodies"
    file.write_bytes(b"\n".join(channel.tally.bodies))
    return file
