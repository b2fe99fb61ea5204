"""What the journal deletes: settled rows by age, and any rows by size, the most needed last.

Votes and message keys have a share of the size that they cannot exceed, so that they never push out
CloudEvents. Whatever senders leave behind who did not prove their name is deleted first.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bridge.journal.schema import row_bytes
from bridge.journal.store import Store

_CHUNK = 32
_SHARE = 10
_PENDING = "SELECT key FROM tracked UNION SELECT event FROM drill WHERE open = 1"

# A configured sink that has not settled the row yet.
_WANTED = """EXISTS (
    SELECT 1 FROM sink s WHERE s.absent IS NULL AND s.low < outbox.seq {more} AND NOT EXISTS (
        SELECT 1 FROM delivery d
        WHERE d.sink = s.name AND d.seq = outbox.seq AND d.how IS NOT NULL))"""


class Trimmed(NamedTuple):
    """How many rows were deleted, and how many of them some sink had not settled."""

    removed: int
    lost: dict[str, int]


def trim(
    store: Store, *, now: float, keep: float, max_size: int, best_effort: Sequence[str] = ()
) -> Trimmed:
    """Delete what is old and settled; above *max_size* also the oldest, settled rows first."""
    with store.transaction(keeps_state=True) as db:
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
    """Four tiers: settled, about unverified votes, needed by best-effort sinks only, the rest."""
    lost: dict[str, int] = {}
    names = ",".join("?" for _ in best_effort)
    required = _WANTED.format(more=f"AND s.name NOT IN ({names})")
    tiers = (
        (f"NOT {_WANTED.format(more='')}", ()),
        ("seq IN (SELECT seq FROM unverified_outcome)", ()),
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


class Space(NamedTuple):
    """Bytes that votes and early approvals, message keys, and outcomes of unverified votes take."""

    verified: int = 0
    unverified: int = 0
    unverified_keys: int = 0
    outcomes: int = 0

    @property
    def votes(self) -> int:
        return self.verified + self.unverified + self.unverified_keys


def space(db: sqlite3.Connection) -> Space:
    return Space(**dict(db.execute("SELECT owner, bytes FROM space").fetchall()))


def has_room(db: sqlite3.Connection, bodies: Iterable[str], max_size: int) -> bool:
    """Whether unverified senders may add votes or early approvals with these *bodies*."""
    more = sum(row_bytes(len(body)) for body in bodies)
    return space(db).unverified + more <= max_size // _SHARE // 2


def bound_votes(store: Store, max_size: int) -> float:
    """Keep votes, keys and early approvals within their share; return how full it is.

    Votes on pending events are never deleted: unverified ones stop at `has_room`, and verified ones
    are few. The keys of verified senders are deleted last.
    """
    db, room = store.connection, max_size // _SHARE
    over, unverified = f"event NOT IN ({_PENDING})", "NOT json_extract(body, '$.verified')"
    waits = "json_extract(body, '$.identity') IS NULL"

    def crowded(now: Space) -> bool:
        return now.votes > room or now.unverified + now.unverified_keys > room * 3 // 4

    def nearly_full(now: Space) -> bool:
        return now.votes > room or now.unverified > room * 3 // 8

    def full(now: Space) -> bool:
        return now.votes > room

    before = space(db)
    if not (crowded(before) or nearly_full(before)):
        return before.votes / room
    store.counted.clear()
    _drop(db, "message_key", "NOT verified", "at", crowded)
    _drop(db, "vote", f"{over} AND {unverified}", "event", nearly_full)
    _drop(db, "early", waits, "id", full)
    _drop(db, "message_key", over, "at", full)
    _drop(db, "vote", over, "event", full)
    _drop(db, "message_key", "1", "at", full)
    return space(db).votes / room


def _drop(
    db: sqlite3.Connection, table: str, where: str, order: str, too_much: Callable[[Space], bool]
) -> None:
    """Delete rows of *table*, the first in *order* first, an eighth at a time."""
    while too_much(space(db)):
        count = db.execute(f"SELECT COUNT(*) FROM {table} WHERE {where}").fetchone()[0]
        if not count:
            return
        last = f"SELECT {order} FROM {table} WHERE {where} ORDER BY {order} LIMIT 1 OFFSET ?"
        db.execute(f"DELETE FROM {table} WHERE {where} AND {order} <= ({last})", (count // 8,))


def has_room_for_outcomes(db: sqlite3.Connection, max_size: int) -> bool:
    """Whether outcomes of unverified votes are within their share, without the settled ones."""
    settled = f"NOT {_WANTED.format(more='')}"
    while space(db).outcomes > max_size // _SHARE:
        rows = db.execute(
            f"""SELECT seq FROM outbox WHERE seq IN (SELECT seq FROM unverified_outcome)
            AND {settled} ORDER BY seq LIMIT {_CHUNK}"""
        ).fetchall()
        if not rows:
            return False
        db.executemany("DELETE FROM outbox WHERE seq = ?", rows)
    return True
