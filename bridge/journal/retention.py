"""What the journal deletes: settled rows by age, and any rows by size, the most needed last."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field

from bridge.journal.store import Store

_CHUNK = 32

# A configured sink that has not settled the row yet.
_WANTED = """EXISTS (
    SELECT 1 FROM sink s WHERE s.absent IS NULL AND s.low < outbox.seq {more} AND NOT EXISTS (
        SELECT 1 FROM delivery d
        WHERE d.sink = s.name AND d.seq = outbox.seq AND d.how IS NOT NULL))"""


@dataclass(frozen=True, slots=True)
class Trimmed:
    """How many rows were deleted, and how many of them some sink had not settled."""

    removed: int = 0
    lost: dict[str, int] = field(default_factory=dict)


def trim(
    store: Store, *, now: float, keep: float, max_size: int, best_effort: Sequence[str] = ()
) -> Trimmed:
    """Delete what is old and settled; above *max_size* also the oldest, settled rows first."""
    with store.transaction() as db:
        removed = _by_age(db, now - keep)
        trimmed = _by_size(db, max_size, best_effort, removed)
    if trimmed.removed:
        # As a script: `execute` would stop after the first page.
        store.connection.executescript("PRAGMA incremental_vacuum")
    return trimmed


def _by_age(db: sqlite3.Connection, before: float) -> int:
    gone = db.execute(
        f"DELETE FROM outbox WHERE recorded < ? AND NOT {_WANTED.format(more='')}", (before,)
    ).rowcount
    db.execute(
        "DELETE FROM delivery WHERE sink IN (SELECT name FROM sink WHERE absent < ?)", (before,)
    )
    db.execute("DELETE FROM sink WHERE absent < ?", (before,))
    return gone


def _by_size(
    db: sqlite3.Connection, max_size: int, best_effort: Sequence[str], removed: int
) -> Trimmed:
    """Three tiers: settled by all sinks, needed by best-effort sinks only, and the rest."""
    lost: dict[str, int] = {}
    names = ",".join("?" for _ in best_effort)
    required = _WANTED.format(more=f"AND s.name NOT IN ({names})")
    tiers = (
        (f"NOT {_WANTED.format(more='')}", ()),
        (f"NOT {required}", tuple(best_effort)),
        ("1", ()),
    )
    for where, values in tiers:
        while used(db) > max_size:
            rows = db.execute(
                f"SELECT seq FROM outbox WHERE {where} ORDER BY seq LIMIT {_CHUNK}", values
            ).fetchall()
            if not rows:
                break
            _count_losses(db, rows, lost)
            db.executemany("DELETE FROM outbox WHERE seq = ?", rows)
            removed += len(rows)
    return Trimmed(removed, lost)


def _count_losses(db: sqlite3.Connection, rows: Sequence[tuple[int]], lost: dict[str, int]) -> None:
    for (seq,) in rows:
        wanting = db.execute(
            """SELECT name FROM sink WHERE absent IS NULL AND low < ?1 AND NOT EXISTS (
            SELECT 1 FROM delivery d WHERE d.sink = name AND d.seq = ?1 AND d.how IS NOT NULL)""",
            (seq,),
        )
        for (name,) in wanting.fetchall():
            lost[name] = lost.get(name, 0) + 1


def used(db: sqlite3.Connection) -> int:
    """Bytes in use, not counting pages that are free for reuse."""
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    free = db.execute("PRAGMA freelist_count").fetchone()[0]
    return int((pages - free) * db.execute("PRAGMA page_size").fetchone()[0])
