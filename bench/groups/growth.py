"""Whether a journal gets slower with what it has seen, and how large it gets.

The time is simulated. Documents, deliveries and trims go through the code of the bridge.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.figure import Figure
from bridge.core import messages
from bridge.core.cloudevent import CloudEvent
from bridge.core.diff import transitions
from bridge.core.model import SCHEDULED, STARTED, Document, Instance, ScheduledEvent
from bridge.core.observer import Observer
from bridge.core.state import Facts, State
from bridge.journal import Settlement
from bridge.journal.cursors import register
from bridge.journal.retention import trim
from bridge.journal.schema import connect_file
from bridge.journal.store import Store

GROUP = "growth"
BAR = 1.2
CHANGES = 40
KEEP = timedelta(days=30)
MAX_SIZE = 256 * 2**20
TIGHT = 64 * 2**20
TRIM_SHARE = 0.02
MOST_IN_DOCUMENT = 500
_MINUTE = 60.0
_VM, _SINK = "vm-0", "out"
_SUBSCRIPTION = "6a5f1d0e-4f5c-4f5f-9d2a-000000000000"


@dataclass
class History:
    """A journal and the days that it has seen. Each event is scheduled, started and completed."""

    path: Path
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    state: State = field(default_factory=State)
    seen: int = 0
    pending: list[ScheduledEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        instance = Instance(_VM, "vm-id-0", subscription=_SUBSCRIPTION, resource_group="bench")
        self._observer = Observer(instance, _VM)
        self.store = Store(connect_file(self.path))
        register(self.store, [_SINK], self.now.timestamp())

    def live(self, days: int, a_day: int) -> None:
        """Let the days pass. Nothing is measured yet, so the disk does not have to keep up."""
        self.store.connection.execute("PRAGMA synchronous = OFF")
        for _ in range(days):
            for count in _parts(a_day):
                self.now += timedelta(days=1) * count / a_day
                self.deliver(self.change(count))
            self.trim()
        self.store.connection.execute("PRAGMA synchronous = FULL")

    def change(self, count: int = 1) -> list[CloudEvent]:
        """A document with new events: the last ones have started, and those before are gone."""
        started = [_started(event) for event in self.pending if event.status == SCHEDULED]
        self.pending = [*started, *self._new(count)]
        facts = Facts(self.now, _VM, boot_id="boot")
        step = transitions(self.state, Document(self.seen, tuple(self.pending)), facts)
        written = [
            messages.transition(one, self._observer, self.now, self.seen)
            for one in step.transitions
        ]
        self.store.commit(step.state, written, self.now.timestamp())
        self.state = step.state
        return written

    def _new(self, count: int) -> Iterator[ScheduledEvent]:
        for _ in range(count):
            self.seen += 1
            yield ScheduledEvent(
                f"{self.seen:08X}-D2CD-49C7-8624-8643E7171297",
                "Reboot",
                SCHEDULED,
                (_VM,),
                self.now + timedelta(minutes=15),
                "VirtualMachine",
                "Virtual machine is being restarted as requested by authorized user.",
                "Platform",
                5.0,
            )

    def deliver(self, events: Sequence[CloudEvent]) -> None:
        done = [Settlement(event.id, "delivered") for event in events]
        self.store.settle(_SINK, done, self.now.timestamp())

    def trim(self, max_size: int = MAX_SIZE) -> float:
        """Seconds that the trim of every minute takes."""
        began = time.perf_counter()
        trim(self.store, now=self.now.timestamp(), keep=KEEP.total_seconds(), max_size=max_size)
        return time.perf_counter() - began

    @property
    def rows(self) -> int:
        return int(self.store.connection.execute("SELECT COUNT(*) FROM outbox").fetchone()[0])

    def size(self) -> int:
        """Bytes of the file, once SQLite has moved its log into it."""
        self.store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return self.path.stat().st_size


def _parts(count: int) -> Iterator[int]:
    while count > 0:
        yield min(count, MOST_IN_DOCUMENT)
        count -= MOST_IN_DOCUMENT


def _started(event: ScheduledEvent) -> ScheduledEvent:
    return ScheduledEvent(
        event.event_id,
        event.event_type,
        STARTED,
        event.resources,
        None,
        event.resource_type,
        event.description,
        event.event_source,
        event.duration,
    )


class Cost:
    """Wall and CPU seconds of the changes of one journal."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def add(self) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        written = self.history.change()
        self.cpu.append(time.process_time() - cpu)
        self.wall.append(time.perf_counter() - wall)
        self.history.deliver(written)


def compare(name: str, day: History, long: History) -> Iterator[Figure]:
    """Take turns. A trim comes every minute, and most changes come alone: so they follow a trim."""
    for when, trims in (("right after another", False), ("after a trim", True)):
        costs = Cost(day), Cost(long)
        for _ in range(CHANGES):
            for cost in costs:
                if trims:
                    cost.history.trim()
                cost.add()
        for unit in ("wall", "cpu"):
            below, above = (_milliseconds(getattr(cost, unit)) for cost in costs)
            said, cpu = f"{name}: a change {when}", unit == "cpu"
            yield Figure(GROUP, said, below, above, "ms", BAR, cpu=cpu)


def _milliseconds(seconds: Sequence[float]) -> list[float]:
    return [one * 1000 for one in seconds]


def measure(folder: Path) -> Iterator[Figure]:
    lives = {"a day of 3": (1, 3), "365 days of 3": (365, 3)}
    lives |= {"a day of 1,000": (1, 1000), "90 days of 1,000": (90, 1000)}
    with ExitStack() as stack:
        histories = []
        for days, a_day in lives.values():
            histories.append(History(folder / f"{days}-{a_day}.db"))
            stack.enter_context(closing(histories[-1].store))
            histories[-1].live(days, a_day)
        short, year, busy_day, busy = histories
        yield from compare("365 days of 3, to a day", short, year)
        yield from compare("90 days of 1,000, to a day", busy_day, busy)
        yield from sizes(year, busy)


def sizes(year: History, busy: History) -> Iterator[Figure]:
    """The files to `max_size`, trims to the minute between two, and a smaller `max_size`."""
    share = "of journal.max_size"
    for name, long in (("365 days of 3", year), ("90 days of 1,000", busy)):
        note = f"{long.size() / 2**20:.0f} MiB with {long.rows} rows"
        yield _absolute(f"{name}: file", [long.size() / MAX_SIZE], share, 1.0, note)
        trims = [long.trim() for _ in range(5)]
        note = f"{statistics.median(trims) * 1000:.0f} ms every minute"
        part = [seconds / _MINUTE for seconds in trims]
        yield _absolute(f"{name}: trim", part, "of its minute", TRIM_SHARE, note)
    seconds = busy.trim(TIGHT)
    note = f"the trim that gets it there takes {seconds:.1f} s"
    yield _absolute("max_size lowered to 64 MiB: file", [busy.size() / TIGHT], share, 1.0, note)


def _absolute(name: str, values: Sequence[float], unit: str, bar: float, note: str) -> Figure:
    return Figure(GROUP, name, (), values, unit, bar, note=note, absolute=True)


async def figures() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        return await asyncio.to_thread(lambda: list(measure(Path(folder))))
