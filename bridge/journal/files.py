"""The journal's files on disk: setting a bad one aside, under a bounded number of names."""

import contextlib
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from bridge.journal.schema import Corrupt, connect_file

_KEPT = 3


def set_aside(path: Path, reason: str) -> Path:
    """Rename the database and its companions, and forget the oldest that were set aside before."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    target = path.with_name(f"{path.name}.{reason}-{stamp}")
    path.rename(target)
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(target.with_name(target.name + suffix))
    _forget(path)
    return target


def reopen(path: Path, vm_id: str | None) -> tuple[sqlite3.Connection, tuple[Path, str] | None]:
    """The file, or a new one if it is corrupt by now or another VM's; with what was set aside."""
    try:
        connection = connect_file(path)
    except Corrupt as error:
        return _begin_anew(path, str(error), "corrupt")
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
    old = [p for p in path.parent.glob(f"{path.name}.*-*") if not p.name.endswith(("-wal", "-shm"))]
    for gone in sorted(old, key=lambda p: p.name.rpartition("-")[2])[:-_KEPT]:
        for suffix in ("", "-wal", "-shm"):
            gone.with_name(gone.name + suffix).unlink(missing_ok=True)
