"""The journal: the local SQLite file that records everything before anything is sent.

`Journal` runs `Store` operations in its own thread, so that the disk never stalls the event loop.
While the file cannot be written, it continues in memory. Read schema, store, cursors, then this.
"""

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

from bridge.common.errors import Unavailable
from bridge.core.cloudevent import CloudEvent
from bridge.core.state import State
from bridge.journal import cursors, retention
from bridge.journal.recovery import FROM_NEWER, IfNewer, merge, reopen, set_aside, stand_in
from bridge.journal.retention import Trimmed
from bridge.journal.schema import Corrupt, Newer, connect_file
from bridge.journal.store import Settlement, Store, Then

T = TypeVar("T")
Origin = Literal["continued", "new", "quarantined"]
log = logging.getLogger(__name__)

_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class SetAside(Exception):
    """The journal was replaced since the state was read: read the state and decide again."""


class Journal:
    """All durable state of one bridge. Every method is one transaction, or one read."""

    def __init__(self, path: Path, newer: IfNewer = "refuse") -> None:
        self.path = path
        self.newer = newer
        self.origin: Origin = "continued"
        self.trouble: str | None = None
        self.generation = 0
        self.quarantined: list[str] = []
        self.times_set_aside = 0
        self.last_set_aside: str | None = None
        self._store: Store | None = None
        self._sinks: Sequence[str] = ()
        self._listeners: set[asyncio.Event] = set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")

    async def open(self) -> None:
        """Open the file, or continue without it and say why in `trouble`. Raises `Newer`.

        With `newer` set to set-aside, a file of a newer version is renamed like a corrupt one.
        """
        await self._in_thread(self._open)

    async def close(self) -> None:
        """Finish running operations and close; first try to save to the file what is in memory."""
        if self.trouble:
            await self.repair()
        if self._store is not None:
            await self._in_thread(self._store.close)
        self._thread.shutdown(wait=False)

    async def run(self, operation: Callable[[Store], T]) -> T:
        """Run *operation* on the file, or on its stand-in if the file cannot be written.

        It runs again when the file fails, so it must write everything in one transaction.
        """
        return await self._in_thread(partial(self._run, operation))

    async def durably(self, operation: Callable[[Store], T]) -> T:
        """Run *operation* on the file, or raise `Unavailable`: memory cannot keep a promise."""

        def on_file(store: Store) -> T:
            if self.trouble is not None:
                raise Unavailable(self.trouble)
            return operation(store)

        return await self.run(on_file)

    @contextlib.contextmanager
    def news(self) -> Generator[asyncio.Event]:
        """An event that is set whenever there is something new to send."""
        event = asyncio.Event()
        self._listeners.add(event)
        try:
            yield event
        finally:
            self._listeners.discard(event)

    def announce(self) -> None:
        for event in self._listeners:
            event.set()

    async def load(self) -> State:
        return await self.run(Store.load)

    async def commit(
        self,
        state: State,
        events: Iterable[CloudEvent],
        now: float,
        *,
        generation: int | None = None,
        **meta: str | None,
    ) -> None:
        """Commit the document and its CloudEvents together; from here on, nothing is lost.

        Raises `SetAside` when the journal is no longer that of *generation*, by default the
        current one: another file would have the state without the CloudEvents before it.
        """
        kept, expected = tuple(events), self.generation if generation is None else generation

        def write(store: Store) -> None:
            if self.generation != expected:
                raise SetAside("the journal was replaced")
            store.commit(state, kept, now, **meta)

        await self._news(write)

    async def append(
        self, events: Iterable[CloudEvent], now: float, then: Then | None = None
    ) -> int:
        """Record CloudEvents that do not come from a document; return how many were new.

        *then* belongs to the same transaction, and runs only if some were new.
        """
        kept = tuple(events)
        return await self._news(lambda store: store.append(kept, now, then))

    async def _news(self, operation: Callable[[Store], T]) -> T:
        """Announce even if the caller is canceled: the thread still finishes the operation."""
        try:
            return await self.run(operation)
        finally:
            self.announce()

    async def register(self, sinks: Sequence[str], now: float) -> list[str]:
        self._sinks = sinks
        return await self.run(lambda store: cursors.register(store, sinks, now))

    async def settle(self, sink: str, verdicts: Sequence[Settlement], now: float) -> None:
        await self.run(lambda store: store.settle(sink, verdicts, now))

    async def claim(self, vm_id: str) -> None:
        """Set the file aside if it came with another VM's image, else mark it as ours."""
        owner = await self.run(lambda store: store.recall("vm_id"))
        if owner is not None and owner != vm_id:
            await self._in_thread(partial(self._replace, f"it belongs to VM {owner}", "foreign"))
        if owner != vm_id:
            await self.run(lambda store: store.remember(vm_id=vm_id))

    async def trim(
        self, *, now: float, keep: float, max_size: int, best_effort: Sequence[str]
    ) -> Trimmed:
        rules = {"now": now, "keep": keep, "max_size": max_size, "best_effort": best_effort}
        return await self.run(lambda store: retention.trim(store, **rules))  # type: ignore[arg-type]  # the caller's keywords are trim's

    async def repair(self) -> bool:
        """Try to return from memory to the file; True when it worked."""
        return self.trouble is not None and await self._in_thread(self._repair)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.origin = "continued" if self.path.exists() else "new"
            self._store = Store(connect_file(self.path))
        except Corrupt as error:
            self._replace(str(error), "corrupt")
        except Newer:
            if self.newer == "refuse":
                raise
            self._replace(FROM_NEWER, "newer")
        except (sqlite3.Error, OSError) as error:
            self.origin = "new"
            self._fall_back(str(error))

    def _run(self, operation: Callable[[Store], T]) -> T:
        if self._store is None:
            raise RuntimeError("the journal is not open")
        try:
            return operation(self._store)
        except (sqlite3.ProgrammingError, sqlite3.IntegrityError):
            raise
        except (sqlite3.DatabaseError, Corrupt) as error:
            if self.trouble is not None:
                raise
            problem, corrupt = str(error), _is_corrupt(error)
        # Act only here, after the error and its cursor are gone. The cursor keeps the file open;
        # closed late, SQLite would delete the companions of a new file of the same name.
        if corrupt:
            self._replace(problem, "corrupt")
        else:
            self._fall_back(problem)
        return operation(self._store)

    def _fall_back(self, problem: str) -> None:
        file = self._store
        self.trouble = f"{self.path} cannot be written: {problem}"
        self._store = stand_in(file)
        log.error("journal.unwritable", extra={"path": str(self.path), "error": problem})
        if file is not None:
            file.close()
        cursors.register(self._store, self._sinks, time.time())

    def _replace(self, problem: str, reason: str) -> None:
        """Set the file aside and start a new one, or continue in memory if that fails."""
        if self._store is not None:
            self._store.close()
            self._store = None
        kept = self.path
        try:
            kept = set_aside(self.path, reason)
            self._store, self.trouble = Store(connect_file(self.path)), None
            cursors.register(self._store, self._sinks, time.time())
        except (sqlite3.Error, OSError, Corrupt) as error:
            self._fall_back(str(error))
        self.generation += 1
        self._quarantined(kept, problem)

    def _repair(self) -> bool:
        spare = self._store
        if spare is None:
            return False
        try:
            connection, gone = reopen(self.path, spare.recall("vm_id"), self.newer)
        except (sqlite3.Error, OSError, Corrupt, Newer):
            return False
        if gone is not None:
            self._quarantined(*gone)
        file = Store(connection)
        try:
            merge(spare, file)
        except sqlite3.Error:
            file.close()
            return False
        spare.close()
        self._store, self.trouble = file, None
        self.generation += 1
        log.warning("journal.recovered", extra={"path": str(self.path)})
        return True

    def _quarantined(self, kept: Path, problem: str) -> None:
        self.origin = "quarantined"
        self.quarantined.append(f"{kept.name}: {problem}")
        self.times_set_aside += 1
        self.last_set_aside = f"{kept.name} ({problem})"
        log.error("journal.set_aside", extra={"path": str(kept), "error": problem})


def _is_corrupt(error: Exception) -> bool:
    """An error without a code comes from the sqlite3 module itself: text that is not UTF-8."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    return (code & 0xFF) in _CORRUPT
