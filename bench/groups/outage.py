"""What a sink that is down costs while rows wait for it, and how fast it catches up.

The webhook refuses connections, or answers 503. The rows are in the journal before the start.
"""

import asyncio
import contextlib
import socket
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

from bench.bridge import bridge
from bench.figure import Figure
from bench.processes import PATIENCE, Process
from bench.servers.metadata import VM, Endpoint, endpoint, event
from bridge.core import messages
from bridge.core.cloudevent import CloudEvent, TransitionKind
from bridge.core.model import Instance, ScheduledEvent
from bridge.core.observer import Observer
from bridge.core.state import Transition
from bridge.journal.cursors import register
from bridge.journal.schema import connect_file
from bridge.journal.store import Store

GROUP = "outage"
WAITING = (0, 1_000, 100_000)
ROUNDS = 12
WINDOW = 15.0
"""For how long CPU time is measured, in seconds."""
CORE_SHARE, COMMIT, DRAIN = 0.02, 1.5, 0.8
STORM = 3_000
LONGEST_DRAIN = 30.0
NOTICE = 60.0
"""Of the event that is announced before the sink is back; the longest backoff is a tenth."""
_SETTLED = 5
"""How many polls a bridge gets to start, and to notice that its sink is down."""
_SINK = "hook"
_CHUNK = 5_000
_KINDS: tuple[TransitionKind, ...] = ("scheduled", "started", "completed")
_PLACEHOLDER = "00000000-D2CD-49C7-8624-8643E7171297"
_LOOK = 0.0005


def written_rows(count: int) -> Iterator[CloudEvent]:
    """CloudEvents about events that are over, three for each; only their ids differ."""
    observer, now = Observer(Instance(VM, "bench"), VM), datetime.now(UTC)
    known = ScheduledEvent(_PLACEHOLDER, "Reboot", "Scheduled", (VM,), now - timedelta(days=1))
    made = [
        messages.transition(Transition(kind, known, 1, affected=True), observer, now, 1)
        for kind in _KINDS
    ]
    for number in range(count):
        event_number, kind = divmod(number, len(_KINDS))
        like, key = made[kind], f"{event_number + 1:08X}{_PLACEHOLDER[8:]}"
        name = f"{number:08x}{like.id[8:]}"
        body = like.body.replace(_PLACEHOLDER.encode(), key.encode())
        yield CloudEvent(name, like.type, key, body.replace(like.id.encode(), name.encode()))


def fill(state: Path, count: int) -> None:
    """Let rows wait for the sink."""
    state.mkdir(parents=True, mode=0o700)
    rows = written_rows(count)
    with closing(Store(connect_file(state / "journal.db"))) as store:
        register(store, [_SINK], time.time())
        for start in range(0, count, _CHUNK):
            some = [next(rows) for _ in range(min(_CHUNK, count - start))]
            store.append(some, time.time())


class Receiver:
    """A webhook that answers what it is told to. Before it begins, its port refuses connections."""

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.answer = b""
        self.arrivals: list[tuple[float, int]] = []
        self._server: asyncio.Server | None = None

    @property
    def arrived(self) -> int:
        return sum(count for _, count in self.arrivals)

    async def begin(self, answer: bytes) -> None:
        self.answer = b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % answer
        if self._server is None:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(lambda: _Requests(self), sock=self._socket)

    def end(self) -> None:
        if self._server is not None:
            self._server.close()
        self._socket.close()

    def took(self, body: bytes) -> None:
        if b" 204 " in self.answer:
            self.arrivals.append((time.perf_counter(), body.count(b'"specversion"')))


class _Requests(asyncio.Protocol):
    """As much of HTTP as POST requests with a length need."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver, self._data, self._missing = receiver, bytearray(), 0
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= max(1, self._missing):
            head, found, _ = self._data.partition(b"\r\n\r\n")
            if not found:
                return
            size = int(head.lower().partition(b"content-length:")[2].partition(b"\r")[0])
            self._missing = len(head) + 4 + size
            if len(self._data) < self._missing:
                return
            self._receiver.took(bytes(self._data[len(head) + 4 : self._missing]))
            del self._data[: self._missing]
            self._missing = 0
            self._transport.write(self._receiver.answer)


@dataclass
class Case:
    """A bridge with so many rows that wait for a sink that is down."""

    waiting: int
    metadata: Endpoint
    receiver: Receiver
    process: Process
    journal: sqlite3.Connection
    commits: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    _number: int = 0

    def recorded(self) -> int:
        return int(self.journal.execute("SELECT MAX(seq) FROM outbox").fetchone()[0] or 0)

    async def change(self, count: int = 1, notice: float = 900.0) -> float:
        """Seconds from an answer with new events to their rows in the journal."""
        before = self.recorded()
        at = format_datetime(datetime.now(UTC) + timedelta(seconds=notice), usegmt=True)
        new = range(self._number, self._number + count)
        self._number += count
        self.metadata.serve(event(number, NotBefore=at) for number in new)
        async with asyncio.timeout(PATIENCE):
            while self.recorded() == before:
                self.process.check()
                await asyncio.sleep(_LOOK)
        return time.perf_counter() - self.metadata.answered

    def release(self) -> None:
        """Answer each poll at once again."""
        self.metadata.holding = False
        self.metadata.serve([event(2**32)])

    async def sample(self) -> None:
        cpu = self.process.cpu
        self.commits.append(await self.change() * 1000)
        self.cpu.append((self.process.cpu - cpu) * 1000)

    async def arrivals(self, count: int, patience: float) -> None:
        until = time.perf_counter() + patience
        while self.receiver.arrived < count and time.perf_counter() < until:
            self.process.check()
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def case(folder: Path, waiting: int, answer: bytes | None, mode: str) -> AsyncGenerator[Case]:
    """Without *answer*, the receiver refuses connections."""
    receiver = Receiver()
    if answer is not None:
        await receiver.begin(answer)
    await asyncio.to_thread(fill, folder / "state", waiting)
    sink = {"type": "webhook", "url": f"http://127.0.0.1:{receiver.port}/", "mode": mode}
    async with endpoint() as metadata, bridge(folder, metadata.url, {_SINK: sink}) as process:
        metadata.serve([event(2**32)])
        file = f"{(folder / 'state' / 'journal.db').as_uri()}?mode=ro"
        await metadata.asked(_SETTLED)
        with closing(sqlite3.connect(file, uri=True, isolation_level=None)) as journal:
            made = Case(waiting, metadata, receiver, process, journal)
            try:
                yield made
            finally:
                receiver.end()
                made.release()


async def core_shares(cases: list[Case]) -> list[float]:
    """Which part of a core each bridge uses while nothing happens."""
    began, before = time.perf_counter(), [one.process.cpu for one in cases]
    await asyncio.sleep(WINDOW)
    passed = time.perf_counter() - began
    return [(one.process.cpu - cpu) / passed for one, cpu in zip(cases, before, strict=True)]


async def while_down(name: str, cases: list[Case]) -> list[Figure]:
    """CPU first, with a poll every second; then changes, one bridge after the other."""
    shares = await core_shares(cases)
    for one in cases:
        one.metadata.holding = True
    for _ in range(ROUNDS + 1):
        for one in cases:
            await one.sample()
    for one in cases:
        one.release()
    return [
        made
        for one, share in zip(cases[1:], shares[1:], strict=True)
        for made in _figures(f"{name}, {one.waiting:,} rows wait", cases[0], one, share, shares[0])
    ]


def _figures(name: str, none: Case, one: Case, share: float, usual: float) -> list[Figure]:
    burns = _absolute(f"{name}: CPU", share, "of a core", CORE_SHARE, f"{usual:.2%} with none")
    cpu = (f"{statistics.median(each.cpu[1:]):.1f} ms" for each in (none, one))
    commits = Figure(
        group=GROUP,
        name=f"{name}: change to journal",
        baseline=none.commits[1:],
        bridge=one.commits[1:],
        unit="ms",
        bar=COMMIT,
        cpu=False,
        note=f"CPU {' and '.join(cpu)}, with what else the bridge does meanwhile",
    )
    return [burns, commits]


def _absolute(name: str, value: float, unit: str, bar: float, note: str) -> Figure:
    return Figure(GROUP, name, (), [value], unit, bar, note=note, absolute=True)


@dataclass(frozen=True)
class Speed:
    """Rows a second from the first arrival to the last, and milliseconds of CPU for each."""

    rate: float
    cpu: float
    rows: int


async def speed(one: Case, count: int, patience: float, cpu: float) -> Speed:
    """Of *count* rows that are about to arrive; *cpu* is the CPU time of the bridge before."""
    await one.arrivals(count, patience)
    (began, first), (ended, _) = one.receiver.arrivals[0], one.receiver.arrivals[-1]
    rows = one.receiver.arrived
    spent = one.process.cpu - cpu
    return Speed((rows - first) / (ended - began), spent / rows * 1000, rows)


async def storm(one: Case) -> Speed:
    """New events at once, for a sink that is there; those of the storm before are canceled."""
    await one.process.idle()
    one.receiver.arrivals.clear()
    cpu, before = one.process.cpu, one.recorded()
    await one.change(STORM)
    return await speed(one, one.recorded() - before, LONGEST_DRAIN, cpu)


async def back(one: Case) -> tuple[float, float]:
    """Let the sink return; seconds until the first delivery, and the CPU time before."""
    await one.change(notice=NOTICE)
    await asyncio.sleep(2)
    cpu, began = one.process.cpu, time.perf_counter()
    await one.receiver.begin(b"204 No Content")
    await one.arrivals(1, NOTICE)
    return one.receiver.arrivals[0][0] - began, cpu


async def after(name: str, none: Case, full: Case) -> list[Figure]:
    """Storms, the drain, and storms again. The first storm is for the sink to recover."""
    await back(none)
    await storm(none)
    storms = [await storm(none), await storm(none)]
    first, cpu = await back(full)
    drained = await speed(full, full.recorded(), LONGEST_DRAIN, cpu)
    full.receiver.end()
    storms += [await storm(none), await storm(none)]
    note = f"{drained.rows:,} rows; the storm has {STORM:,} events"
    rates, drains = [one.rate for one in storms], [drained.rate]
    cpus, costs = [one.cpu for one in storms], [drained.cpu]
    about, part = f"{name}: drain to storm", first / (NOTICE / 10)
    return [
        _absolute(f"{name}: first delivery", part, "of the backoff", 1.0, f"{first:.1f} s"),
        Figure(GROUP, about, rates, drains, "rows/s", DRAIN, at_least=True, note=note),
        Figure(GROUP, f"{about}, CPU a row", cpus, costs, "ms", 1 / DRAIN),
    ]


async def down(name: str, folder: Path, answer: bytes | None, mode: str) -> list[Figure]:
    async with AsyncExitStack() as stack:
        made = [case(folder / str(waiting), waiting, answer, mode) for waiting in WAITING]
        cases = list(await asyncio.gather(*map(stack.enter_async_context, made)))
        return await while_down(name, cases) + await after(name, cases[0], cases[-1])


async def figures() -> list[Figure]:
    with tempfile.TemporaryDirectory() as name:
        refused = await down("refused", Path(name, "refused"), None, "structured")
        return refused + await down("503, in batches", Path(name, "503"), b"503 Busy", "batch")
