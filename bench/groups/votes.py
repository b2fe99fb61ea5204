"""From a vote to its POST on each channel, and what a vote costs, beside the least that does it."""

import asyncio
import base64
import contextlib
import itertools
import json
import socket
import sqlite3
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer

from bench.bridge import bridge
from bench.figure import Figure
from bench.processes import PATIENCE, Process, process
from bench.servers.brokers import Kafka, Mosquitto, kafka, mosquitto
from bench.servers.metadata import VM, Endpoint, endpoint, event
from bench.servers.voters import (
    ALLOW,
    PUBLIC,
    SECRET,
    TOKENS,
    Ballot,
    Channels,
    Vote,
    ballot,
    producer,
    voters,
)
from bridge.common.signatures import read_key

GROUP = "votes"
P50, P99, CPU, VMS, BURST = 2.0, 4.0, 4.0, 1.5, 5.0
WAYS = ("http", "kafka", "mqtt")
SECONDS = {1: 15, 20: 8}
"""For how long to vote, by votes a second on a channel."""
AT_ONCE = 200
CHUNKS, CHUNK = 4, 500
NAMES, CROWD, CROWD_CHUNK = 200, 10_000, 500
LONGEST = 40.0
"""How long the 10,000 votes may take, for both bridges together, in seconds."""
_BELIEVED = 2.5
"""A signature has whole seconds: wait until it is later than the event, in seconds."""
_LOOK = 0.002
_SINKS = {"out": {"type": "stdout", "only": {"types": ["azure.scheduledevents.source.*"]}}}
"""The outcomes are in the journal; to publish them is what other groups measure."""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def _name(number: int) -> str:
    return str(event(number)["EventId"])


@dataclass
class Program:
    """The bridge or its baseline, with an endpoint of its own."""

    at: Endpoint
    process: Process
    ways: dict[str, Vote] = field(default_factory=dict)
    _sent: dict[str, float] = field(default_factory=dict)

    async def serve(self, numbers: range) -> None:
        self.at.serve(event(number) for number in numbers)
        self.at.posts.clear()
        await self.at.asked(self.at.polls + 2)

    async def vote(self, way: str, number: int) -> None:
        self._sent[_name(number)] = time.perf_counter()
        await self.ways[way](_name(number))

    async def posted(self, numbers: Sequence[int]) -> list[float]:
        """Seconds from each vote to the POST that names its event."""
        names = {_name(number) for number in numbers}
        until = time.perf_counter() + PATIENCE
        while missing := names - {name for _, found in self.at.posts for name in found}:
            self.process.check()
            if time.perf_counter() > until:
                raise TimeoutError(f"{len(missing)} of {len(names)} votes were not POSTed")
            await asyncio.sleep(_LOOK)
        first: dict[str, float] = {}
        for at, found in self.at.posts:
            for name in found:
                first.setdefault(name, at)
        return [first[_name(number)] - self._sent[_name(number)] for number in numbers]


async def _topic(broker: Kafka) -> dict[str, Any]:
    topic = f"bench.votes.{uuid.uuid4().hex[:8]}"
    await asyncio.to_thread(broker.create, topic)
    return {"type": "kafka", "bootstrap_servers": [broker.address], "topic": topic}


async def _channels(broker: Kafka, mqtt: Mosquitto, path: str) -> Channels:
    topic = f"bench/votes/{uuid.uuid4().hex[:8]}"
    settings = {"type": "mqtt", "host": "127.0.0.1", "port": mqtt.port, "topic": topic}
    return Channels(await _topic(broker), settings, _free_port(), path)


@contextlib.asynccontextmanager
async def bridge_program(folder: Path, to: Channels) -> AsyncGenerator[Program]:
    sources = {"kafka": {**to.kafka, "trust": "signed"}, "mqtt": {**to.mqtt, "trust": "signed"}}
    tokens = [{"name": token, "token": token, "scopes": ["approve"]} for token in TOKENS]
    more: dict[str, Any] = {
        "approvals": {"from": sources, "allow": ALLOW},
        "http": {"listen": f"127.0.0.1:{to.port}", "tokens": tokens},
    }
    async with endpoint() as at, bridge(folder, at.url, _SINKS, **more) as running:
        yield Program(at, running)


@contextlib.asynccontextmanager
async def raw(folder: Path, **settings: Any) -> AsyncGenerator[Program]:
    folder.mkdir(parents=True)
    async with endpoint() as at:
        given = {"url": at.url, "folder": str(folder), "key": PUBLIC, "tokens": TOKENS} | settings
        program = [sys.executable, "-m", "bench.baselines.votes_raw", json.dumps(given)]
        async with process(program, folder / "log") as running:
            yield Program(at, running)


@contextlib.asynccontextmanager
async def pair(broker: Kafka, mqtt: Mosquitto, folder: Path) -> AsyncGenerator[list[Program]]:
    """The baseline and the bridge, both with all channels."""
    least, ours = [await _channels(broker, mqtt, p) for p in ("/votes", "/api/v1/approvals")]
    settings = {"kafka": least.kafka, "mqtt": least.mqtt, "port": least.port}
    async with (
        raw(folder / "raw", posts=True, poll=1.0, **settings) as below,
        bridge_program(folder / "bridge", ours) as above,
        voters(broker, mqtt, [least, ours]) as ways,
    ):
        below.ways, above.ways = ways
        await asyncio.gather(below.at.asked(3), above.at.asked(3))
        yield [below, above]


async def voting(
    pairs: Sequence[Program], ways: Sequence[str], rate: int, first: int
) -> dict[str, list[list[float]]]:
    """Let both get votes in turns; the times of each way, the baseline's first."""
    count = rate * SECONDS[rate]
    numbers = range(first, first + count * len(ways))
    await asyncio.gather(*(one.serve(numbers) for one in pairs))
    await asyncio.sleep(_BELIEVED)
    began = time.perf_counter()
    steps = itertools.product(range(count), range(len(ways)), range(len(pairs)))
    for step, (turn, way, which) in enumerate(steps):
        due = began + step / (rate * len(ways) * len(pairs))
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        await pairs[which].vote(ways[way], numbers[turn * len(ways) + way])
    return {
        name: [await one.posted(numbers[way :: len(ways)]) for one in pairs]
        for way, name in enumerate(ways)
    }


def latencies(
    way: str, rate: int, times: Sequence[Sequence[float]], note: str = ""
) -> list[Figure]:
    about = f"{way}, {rate} a second: vote to POST"
    low, high = ([seconds * 1000 for seconds in each] for each in times)
    slowest = f"of {len(low)}"
    return [
        Figure(GROUP, f"{about}, p50", low, high, "ms", P50, cpu=False, note=note),
        Figure(
            GROUP,
            f"{about}, p99",
            baseline=[_p99(low)],
            bridge=[_p99(high)],
            unit="ms",
            bar=P99,
            cpu=False,
            note=slowest,
        ),
    ]


def _p99(times: Sequence[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


async def burst(pairs: Sequence[Program], first: int) -> Figure:
    """Approvals for many events at once, by Kafka: seconds until all of them are POSTed."""
    numbers, taken = range(first, first + AT_ONCE), list[float]()
    for one in pairs:
        await one.serve(numbers)
        await asyncio.sleep(_BELIEVED)
        await asyncio.gather(*(one.vote("kafka", number) for number in numbers))
        taken.append(max(await one.posted(numbers)))
    note = f"the baseline takes {taken[0]:.2f} s, and Azure gets {len(pairs[1].at.posts)} POSTs"
    name = f"{AT_ONCE} approvals for {AT_ONCE} events at once, until the last POST"
    return Figure(GROUP, name, (), taken[1:], "s", BURST, cpu=False, note=note, absolute=True)


async def speeds(broker: Kafka, mqtt: Mosquitto, folder: Path) -> list[Figure]:
    """One vote a second on all channels together; then 20 a second on one after the other."""
    found = list[Figure]()
    async with pair(broker, mqtt, folder) as both:
        for way, times in (await voting(both, WAYS, 1, 0)).items():
            found += latencies(way, 1, times)
        for place, way in enumerate(WAYS, 1):
            before = [one.process.cpu for one in both]
            times = (await voting(both, [way], 20, place * 1000))[way]
            spent = [o.process.cpu - cpu for o, cpu in zip(both, before, strict=True)]
            each = " and ".join(f"{cpu / len(times[0]) * 1000:.1f} ms" for cpu in spent)
            found += latencies(way, 20, times, f"CPU {each} a vote, with polls")
        return [*found, await burst(both, 10_000)]


@dataclass
class Reader:
    """A program that reads signed votes from Kafka, and how many it has recorded."""

    process: Process
    topic: str
    journal: sqlite3.Connection
    count: str
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def recorded(self) -> int:
        return int(self.journal.execute(self.count).fetchone()[0] or 0)

    async def take(self, sending: AIOKafkaProducer, ballots: Sequence[Ballot]) -> None:
        """Milliseconds for each vote, from the first one sent to the last one in the journal."""
        before, cpu, began = self.recorded(), self.process.cpu, time.perf_counter()
        for one in ballots:
            await sending.send(self.topic, one.body, headers=one.pairs)
        until = began + PATIENCE
        while self.recorded() < before + len(ballots):
            self.process.check()
            if time.perf_counter() > until:
                found = self.recorded() - before
                raise TimeoutError(f"{found} of {len(ballots)} votes were recorded")
            await asyncio.sleep(_LOOK)
        self.wall.append((time.perf_counter() - began) * 1000 / len(ballots))
        self.cpu.append((await self.process.idle() - cpu) * 1000 / len(ballots))


@contextlib.asynccontextmanager
async def bridge_reader(
    broker: Kafka, folder: Path, events: Sequence[dict[str, Any]], **approvals: Any
) -> AsyncGenerator[Reader]:
    """A bridge that polls rarely, so that only votes cost something."""
    topic = await _topic(broker)
    rules = {"from": {"bus": {**topic, "trust": "signed"}}, **approvals}
    async with endpoint() as at:
        at.serve(events)
        slow = {"poll_interval": "10m"}
        async with bridge(folder, at.url, _SINKS, source=slow, approvals=rules) as running:
            await at.asked(1)
            await running.idle()
            with _opened(folder / "state" / "journal.db") as journal:
                yield Reader(running, topic["topic"], journal, "SELECT MAX(seq) FROM outbox")


@contextlib.asynccontextmanager
async def raw_reader(broker: Kafka, folder: Path) -> AsyncGenerator[Reader]:
    topic = await _topic(broker)
    async with raw(folder, posts=False, poll=600.0, kafka=topic) as made:
        await made.at.asked(1)
        await made.process.idle()
        with _opened(folder / "baseline.sqlite") as journal:
            yield Reader(made.process, topic["topic"], journal, "SELECT COUNT(*) FROM vote")


def _opened(file: Path) -> "closing[sqlite3.Connection]":
    uri = f"{file.as_uri()}?mode=ro"
    return closing(sqlite3.connect(uri, uri=True, isolation_level=None))


async def costs(broker: Kafka, folder: Path, distinct: int) -> list[Figure]:
    """Chunks of votes in turns. No policy is satisfied, so nothing is POSTed."""
    numbers, key = itertools.cycle(range(distinct)), read_key(SECRET)
    words = itertools.cycle(["approve"] * distinct + ["hold"] * distinct)
    events = [event(number) for number in range(distinct)]
    rules = {"require": {"count": 2}, "allow": [ALLOW[0], _allowed(1)]}
    async with (
        raw_reader(broker, folder / "raw") as below,
        bridge_reader(broker, folder / "bridge", events, **rules) as above,
        producer(broker) as sending,
    ):
        await asyncio.sleep(_BELIEVED)
        for count in (CHUNK // 5, *[CHUNK] * CHUNKS):
            said = [ballot(_name(next(numbers)), key, decision=next(words)) for _ in range(count)]
            for one in (below, above):
                await one.take(sending, said)
    name = f"{CHUNK * CHUNKS:,} votes on {'one event' if distinct == 1 else f'{distinct:,} events'}"
    rate = f"{1000 / statistics.median(above.wall[1:]):.0f} votes/s"
    return [
        Figure(GROUP, f"{name}: CPU a vote", below.cpu[1:], above.cpu[1:], "ms", CPU, note=rate),
    ]


def crowd(vms: int) -> Iterator[Ballot]:
    """Votes by many names on one event; the last VM gets none, so that nothing is POSTed."""
    keys = [read_key(_secret(number)) for number in range(NAMES)]
    for number in itertools.count():
        turn, name = divmod(number, NAMES)
        lap, vm = divmod(turn, vms - 1)
        word = ("approve", "hold")[lap % 2]
        yield ballot(_name(0), keys[name], decision=word, resource=f"vm-{vm}")


def _secret(number: int) -> str:
    return f"whsec_{base64.b64encode(number.to_bytes(32)).decode()}"


def _allowed(number: int) -> dict[str, Any]:
    return {"approver": f"name-{number}", "keys": [{"hmac": _secret(number)}]}


async def crowds(broker: Kafka, folder: Path) -> list[Figure]:
    """As many of the votes as there is time for, in turns: 10 VMs, 200 VMs."""
    allow = [_allowed(number) for number in range(NAMES)]
    async with AsyncExitStack() as stack:
        readers = list[tuple[Reader, Iterator[Ballot]]]()
        for vms in (10, 200):
            seen = event(0, Resources=[VM, *(f"vm-{number}" for number in range(1, vms))])
            made = bridge_reader(broker, folder / str(vms), [seen], allow=allow)
            readers.append((await stack.enter_async_context(made), crowd(vms)))
        sending = await stack.enter_async_context(producer(broker))
        await asyncio.sleep(_BELIEVED)
        began, taken = time.perf_counter(), 0
        while taken < CROWD and time.perf_counter() < began + LONGEST:
            for reader, ballots in readers:
                await reader.take(sending, list(itertools.islice(ballots, CROWD_CHUNK)))
            taken += CROWD_CHUNK
    (few, _), (many, _) = readers
    name = f"{taken:,} votes by {NAMES} names over 200 VMs, to 10 VMs"
    last = f"the last {CROWD_CHUNK} take {many.wall[-1]:.1f} and {few.wall[-1]:.1f} ms each"
    return [
        Figure(GROUP, f"{name}: a vote", few.wall, many.wall, "ms", VMS, cpu=False, note=last),
        Figure(GROUP, f"{name}: CPU a vote", few.cpu, many.cpu, "ms", VMS),
    ]


async def figures() -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with kafka() as broker, mosquitto() as mqtt:
            found = await speeds(broker, mqtt, folder / "speeds")
            for distinct in (1, CHUNK * CHUNKS):
                found += await costs(broker, folder / f"costs-{distinct}", distinct)
            return found + await crowds(broker, folder / "crowds")
