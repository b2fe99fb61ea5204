"""One bridge that the explorer can stop at every point where it waits, copy, and continue.

A stopped bridge is an image of its journal, its memory when it was last at rest, and what has
happened since. To continue it, the same happens again to a copy: the code is the real one, and it
gets the same results, so it arrives at the same point.
"""

import asyncio
import random
import sqlite3
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any

from model.memory import copied, described
from model.operations import LOOP, Operation, SteppedJournal, Wait, fingerprint
from support.bridge import Bridge
from support.clock import StillClock

from bridge.config import Config
from bridge.journal.store import Store

Task = Coroutine[Any, Any, None]
Tasks = Mapping[str, Callable[[Bridge], Task]]
"""What a bridge can begin to do, by name."""


@dataclass(frozen=True)
class Happened:
    """One thing that happened to a bridge: a task began, or got a result; or its rules changed."""

    at: datetime
    task: str
    begins: bool = False
    result: Any = None
    config: Config | None = None


@dataclass(frozen=True)
class Process:
    """A stopped bridge. `waits` says what each of its tasks waits for."""

    image: bytes
    memory: Bridge
    since: tuple[Happened, ...]
    waits: Mapping[str, Wait | None]
    woken: bool
    wakes_at: float
    was_read: bool
    incarnation: int | str | None
    key: bytes
    trail: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def at_rest(self) -> bool:
        return not self.waits


class Running:
    """A bridge that is brought to where it was stopped, and can take one more step."""

    def __init__(self, process: Process, tasks: Tasks, db: sqlite3.Connection) -> None:
        self.process, self.tasks, self.db = process, tasks, db
        self.bridge: Bridge = copied(process.memory, {})
        self.since = list(process.since)
        self.trail = dict(process.trail)
        self._live: dict[str, Task] = {}
        self._waits: dict[str, Any] = {}
        random.seed(0)
        with _turning():
            for one in process.since:
                self._play(one)
        db.deserialize(process.image)
        self.image, self.content = process.image, process.key[:16]

    @property
    def journal(self) -> SteppedJournal:
        journal = self.bridge.journal
        assert isinstance(journal, SteppedJournal)
        return journal

    @property
    def clock(self) -> StillClock:
        clock = self.bridge.runtime.clock
        assert isinstance(clock, StillClock)
        return clock

    def waits_for(self, task: str) -> Any:
        """What the task waits for; None when it is done."""
        return self._waits.get(task)

    def happen(self, one: Happened) -> None:
        """Let something happen, and remember it."""
        self.since.append(one)
        before = self.trail.get(one.task, b"")
        text = f"{one.at}{one.result!r}".encode()
        self.trail[one.task] = blake2b(before + text, digest_size=16).digest()
        with _turning():
            self._play(one)

    def operate(self, task: str, now: datetime) -> bool:
        """Run the operation that the task waits for; True if it changed the journal."""
        operation = self._waits[task]
        assert isinstance(operation, Operation)
        self.clock.moment = now
        self.journal.use(Store(self.db))
        before = self.db.total_changes
        result = operation.call()
        if changed := self.db.total_changes != before:
            self.image, self.content = self.db.serialize(), fingerprint(self.db)
        self.happen(Happened(now, task, result=result))
        return changed

    def _play(self, one: Happened) -> None:
        self.clock.moment = one.at
        if one.config is not None:
            self.bridge.runtime.configure(one.config)
        elif one.begins:
            self._live[one.task] = self.tasks[one.task](self.bridge)
            self._resume(one.task, None)
        else:
            self._resume(one.task, one.result)
        self._let_in()

    def _resume(self, task: str, result: Any) -> None:
        try:
            self._waits[task] = self._live[task].send(result)
        except StopIteration:
            del self._live[task]
            self._waits.pop(task, None)

    def _let_in(self) -> None:
        """Resume the tasks that a lock lets in now."""
        while ready := [name for name, wait in self._waits.items() if _is_let_in(wait)]:
            self._resume(ready[0], None)

    def stopped(self) -> Process:
        """The bridge where it is now. After this, it cannot take another step."""
        trail = {name: digest for name, digest in self.trail.items() if name in self._live}
        waits = {
            name: wait if isinstance(wait, Wait) else None for name, wait in self._waits.items()
        }
        memory = described(self.bridge, set())
        rules = id(self.bridge.runtime.config)
        wakes_at = self.bridge.service.decisions._wake_at
        text = f"{memory}{sorted(trail.items())}{wakes_at}{rules}{self.journal.woken}".encode()
        rest = not self._live
        made = Process(
            self.image,
            self.bridge if rest else self.process.memory,
            () if rest else tuple(self.since),
            waits,
            self.journal.woken,
            wakes_at,
            self.bridge.endpoint._was_read,
            self.bridge.endpoint._incarnation,
            self.content + blake2b(text, digest_size=16).digest(),
            trail,
        )
        self.close()
        return made

    def close(self) -> None:
        with _turning():
            for task in self._live.values():
                task.close()


def _is_let_in(wait: Any) -> bool:
    return isinstance(wait, asyncio.Future) and wait.done()


@contextmanager
def _turning() -> Iterator[None]:
    """Locks look for a running loop when somebody has to wait."""
    asyncio._set_running_loop(LOOP)
    try:
        yield
    finally:
        asyncio._set_running_loop(None)


def begun(
    bridge: Bridge, image: bytes, prepare: Callable[[Bridge], Task], db: sqlite3.Connection
) -> Process:
    """A bridge that has just started on this journal."""
    first = Process(
        image, bridge, (), {}, woken=True, wakes_at=0.0, was_read=False, incarnation=None, key=b""
    )
    running = Running(first, {"start": prepare}, db)
    now = running.clock.moment
    running.content = fingerprint(db)
    running.happen(Happened(now, "start", begins=True))
    while running.waits_for("start"):
        running.operate("start", now)
    return running.stopped()
