"""The in-memory stand-in for a journal that cannot be written, and the way back to the file.

Ids are deterministic, so something recorded twice is one row: merging is simple.
"""

import contextlib
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from bridge.journal.cursors import begin, pending_rows
from bridge.journal.schema import Corrupt, Newer, connect_file, connect_memory
from bridge.journal.store import Store, newest

IfNewer = Literal["refuse", "set-aside"]
"""What to do with a file that a newer version of the bridge wrote."""
FROM_NEWER = "it was written by a newer version of the bridge"
_KEPT = 3


def set_aside(path: Path, reason: str) -> Path:
    """Rename the database with its log, and delete the oldest that were set aside before.

    Until the database has its new name, the log has both, so that a kill separates neither from
    its other half. The third file is an index of the log, which SQLite can always make again.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    target = path.with_name(f"{path.name}.{reason}-{stamp}")
    with contextlib.suppress(FileNotFoundError):
        _duplicate(_beside(path, "-wal"), _beside(target, "-wal"))
    path.rename(target)
    for suffix in ("-wal", "-shm"):
        _beside(path, suffix).unlink(missing_ok=True)
    _forget(path)
    return target


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _duplicate(file: Path, copy: Path) -> None:
    """A second name for the file, or a copy where files have only one name."""
    try:
        os.link(file, copy)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copy2(file, copy)


def reopen(
    path: Path, vm_id: str | None, newer: IfNewer
) -> tuple[sqlite3.Connection, tuple[Path, str] | None]:
    """The file, or a new one if it cannot be used; with what was set aside."""
    try:
        connection = connect_file(path)
    except Corrupt as error:
        return _begin_anew(path, str(error), "corrupt")
    except Newer:
        if newer == "refuse":
            raise
        return _begin_anew(path, FROM_NEWER, "newer")
    found = connection.execute("SELECT value FROM meta WHERE name = 'vm_id'").fetchone()
    if found is None or vm_id in (None, found[0]):
        return connection, None
    connection.close()
    return _begin_anew(path, f"it belongs to VM {found[0]}", "foreign")


def _begin_anew(
    path: Path, problem: str, reason: str
) -> tuple[sqlite3.Connection, tuple[Path, str]]:
    kept = set_aside(path, reason)
    return connect_file(path), (kept, problem)


def _forget(path: Path) -> None:
    """Delete all but the last few, and logs whose database a kill kept where it was."""
    old = [p for p in path.parent.glob(f"{path.name}.*-*") if not p.name.endswith(("-wal", "-shm"))]
    for gone in sorted(old, key=lambda p: p.name.rpartition("-")[2])[:-_KEPT]:
        for suffix in ("", "-wal", "-shm"):
            _beside(gone, suffix).unlink(missing_ok=True)
    for log in path.parent.glob(f"{path.name}.*-*-wal"):
        if not log.with_name(log.name.removesuffix("-wal")).exists():
            log.unlink()


_PLAIN = ("meta", "tracked", "ended", "sink", "grants", "reminded", "drill")
"""Votes are not copied: while the file cannot be written, no approval is accepted or acted on."""


def stand_in(file: Store | None) -> Store:
    """A store in memory that continues where the file stopped, as far as it can be read."""
    spare = Store(connect_memory())
    if file is not None:
        with contextlib.suppress(sqlite3.Error), spare.transaction():
            _seed(file.connection, spare.connection)
    return spare


def _seed(file: sqlite3.Connection, spare: sqlite3.Connection) -> None:
    for table in _PLAIN:
        _copy(file, spare, f"SELECT * FROM {table}", table)
    for seq in sorted(_needed(file)):
        _copy(file, spare, f"SELECT * FROM outbox WHERE seq = {seq}", "outbox")
        _copy(file, spare, f"SELECT * FROM delivery WHERE seq = {seq}", "delivery")
    spare.execute("DELETE FROM sqlite_sequence WHERE name = 'outbox'")
    spare.execute("INSERT INTO sqlite_sequence VALUES ('outbox', ?)", (newest(file),))


def _needed(file: sqlite3.Connection) -> set[int]:
    """Rows that any sink still needs, even a sink that is added or returns meanwhile."""
    unsettled = file.execute(
        """SELECT o.seq FROM outbox o JOIN sink s ON s.low < o.seq
        LEFT JOIN delivery d ON d.sink = s.name AND d.seq = o.seq WHERE d.how IS NULL"""
    )
    return {seq for (seq,) in unsettled} | pending_rows(file)


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, query: str, table: str) -> None:
    for row in source.execute(query):
        marks = ",".join("?" for _ in row)
        target.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)


def merge(spare: Store, file: Store) -> None:
    """Write to the file, in one transaction, all that happened while it could not be written."""
    source = spare.connection
    with file.transaction() as target:
        _merge_outbox(source, target)
        _merge_places(source, target)
        _merge_state(source, target)


def _merge_places(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """A sink that is new to the file starts with what the stand-in still has for it."""
    known = {name for (name,) in target.execute("SELECT name FROM sink")}
    for name, low, absent in source.execute("SELECT name, low, absent FROM sink").fetchall():
        if name not in known:
            begin(target, name, set(_waiting(source, target, name, low)), time.time())
        target.execute("UPDATE sink SET absent = ? WHERE name = ?", (absent, name))


def _waiting(
    source: sqlite3.Connection, target: sqlite3.Connection, sink: str, low: int
) -> Iterator[int]:
    rows = source.execute(
        """SELECT o.id FROM outbox o LEFT JOIN delivery d ON d.sink = ? AND d.seq = o.seq
        WHERE o.seq > ? AND d.how IS NULL""",
        (sink, low),
    )
    for row in rows:
        yield target.execute("SELECT seq FROM outbox WHERE id = ?", row).fetchone()[0]


def _merge_outbox(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Merge rows by id, each with its deliveries."""
    rows = source.execute("SELECT id, type, key, recorded, body, seq FROM outbox ORDER BY seq")
    for *row, number in rows:
        target.execute(
            "INSERT OR IGNORE INTO outbox(id, type, key, recorded, body) VALUES (?, ?, ?, ?, ?)",
            row,
        )
        found = target.execute("SELECT seq FROM outbox WHERE id = ?", row[:1]).fetchone()
        deliveries = source.execute(
            """SELECT sink, how, attempts, first, last, error, note FROM delivery
            WHERE seq = ?""",
            (number,),
        )
        target.executemany(
            """INSERT INTO delivery(seq, sink, how, attempts, first, last, error, note)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(sink, seq) DO UPDATE SET
            how = COALESCE(how, excluded.how), attempts = excluded.attempts,
            last = excluded.last, error = excluded.error, note = excluded.note
            WHERE how IS NULL""",
            [(found[0], *delivery) for delivery in deliveries],
        )


def _merge_state(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """The stand-in wins for all that it tracked or saw end; the next poll decides the rest."""
    for row in source.execute("SELECT * FROM tracked"):
        target.execute("INSERT OR REPLACE INTO tracked VALUES (?, ?)", row)
    for row in source.execute("SELECT * FROM ended"):
        target.execute(
            """INSERT INTO ended VALUES (?, ?, ?) ON CONFLICT(key) DO UPDATE SET
            life = MAX(life, excluded.life), at = MAX(at, excluded.at)""",
            row,
        )
    over = source.execute("SELECT key FROM ended WHERE key NOT IN (SELECT key FROM tracked)")
    target.executemany("DELETE FROM tracked WHERE key = ?", over.fetchall())
    for name, value in source.execute("SELECT name, value FROM meta"):
        # A boot that only the stand-in has seen is still news for what the file tracks, and the
        # file detects replays since its own creation.
        verb = "IGNORE" if name in {"boot_id", "born"} else "REPLACE"
        target.execute(f"INSERT OR {verb} INTO meta VALUES (?, ?)", (name, value))
    # An outage that ended meanwhile must not end a second time.
    if Store(source).recall("last_good") and not Store(source).recall("degraded_since"):
        target.execute("DELETE FROM meta WHERE name = 'degraded_since'")
