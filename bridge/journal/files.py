"""The journal's files on disk: setting a bad one aside, under a bounded number of names."""

import contextlib
from datetime import UTC, datetime
from pathlib import Path

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


def _forget(path: Path) -> None:
    old = [p for p in path.parent.glob(f"{path.name}.*-*") if not p.name.endswith(("-wal", "-shm"))]
    for gone in sorted(old, key=lambda p: p.name.rpartition("-")[2])[:-_KEPT]:
        for suffix in ("", "-wal", "-shm"):
            gone.with_name(gone.name + suffix).unlink(missing_ok=True)
