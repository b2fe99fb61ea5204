"""Journals to test with: real SQLite files, a disk that fills up on demand, and short CloudEvents."""

import contextlib
from collections.abc import AsyncGenerator, Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from support.cloudevents import make
from support.world import NOON, scheduled_event

from bridge.core.cloudevent import CloudEvent
from bridge.core.state import State, Tracked
from bridge.journal import Journal, Settlement
from bridge.journal.schema import connect_file
from bridge.journal.store import Store

NOW = 1_000_000.0


def about(key: str, n: int = 1, **data: Any) -> CloudEvent:
    """The n-th CloudEvent about that key; its id is readable."""
    made = make(n, key=key, **data)
    return replace(
        made, id=f"{key}/{n}", body=made.body.replace(made.id.encode(), f"{key}/{n}".encode())
    )


def open_store(path: Path) -> Store:
    return Store(connect_file(path))


def tracking(*keys: str) -> State:
    """A state in which these scheduled events are pending and announced."""
    tracked = {key: Tracked(scheduled_event(key), announced=True) for key in keys}
    return State(tracked=tracked, last_good=NOON)


def offered(store: Store, sink: str, limit: int = 500, blocked: Iterable[str] = ()) -> list[str]:
    return [row.event.id for row in store.unsettled(sink, limit, frozenset(blocked))]


def everything(store: Store, sink: str) -> list[str]:
    """Everything that the sink has not settled, in order of delivery."""
    rows = store.connection.execute(
        """SELECT o.id FROM outbox o LEFT JOIN delivery d ON d.sink = ?1 AND d.seq = o.seq
        WHERE o.seq > (SELECT low FROM sink WHERE name = ?1) AND d.how IS NULL ORDER BY o.seq""",
        (sink,),
    )
    return [name for (name,) in rows]


def recorded(store: Store) -> list[str]:
    return [name for (name,) in store.connection.execute("SELECT id FROM outbox ORDER BY seq")]


def low(store: Store, sink: str) -> int:
    return store.connection.execute("SELECT low FROM sink WHERE name = ?", (sink,)).fetchone()[0]


def delivered(*ids: str) -> list[Settlement]:
    return [Settlement(name, "delivered") for name in ids]


async def fill_disk(journal: Journal) -> None:
    """From now on the file may not grow: what needs another page fails as on a full disk."""
    await journal.run(lambda store: store.connection.execute("PRAGMA max_page_count = 1"))


async def forbid_writing(journal: Journal) -> None:
    """From now on every write fails, as on a file system that was mounted read-only."""
    await journal.run(lambda store: store.connection.execute("PRAGMA query_only = ON"))


@contextlib.asynccontextmanager
async def opened(path: Path, *sinks: str) -> AsyncGenerator[Journal]:
    journal = Journal(path)
    await journal.open()
    try:
        if sinks:
            await journal.register(sinks, NOW)
        yield journal
    finally:
        await journal.close()


async def spoil(journal: Journal) -> None:
    """Overwrite the file's content under the open connection, as a bad disk would."""

    def damage(store: Store) -> None:
        store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        body = bytearray(journal.path.read_bytes())
        body[4096:] = b"\xff" * (len(body) - 4096)
        journal.path.write_bytes(body)
        store.connection.execute("PRAGMA cache_size = 0")
        store.connection.execute("PRAGMA shrink_memory")

    await journal.run(damage)


def put_in_the_way(path: Path) -> Path:
    """Replace the file by a directory, so that it cannot be opened."""
    away = path.with_name("away.db")
    path.rename(away)
    path.mkdir()
    return away


def clear_the_way(path: Path, away: Path) -> None:
    path.rmdir()
    away.rename(path)


@contextlib.contextmanager
def statements(store: Store | Journal) -> Generator[list[str]]:
    """All that is asked of the database meanwhile."""
    found: list[str] = []
    opened = store._store if isinstance(store, Journal) else store
    assert opened is not None
    opened.connection.set_trace_callback(found.append)
    try:
        yield found
    finally:
        opened.connection.set_trace_callback(None)
