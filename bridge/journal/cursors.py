"""The position of each sink and approval source: new ones, replays, and dead letters."""

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from bridge.core.cloudevent import TRANSITIONS, CloudEvent, full_type
from bridge.core.ids import safe_id
from bridge.journal.store import Store, newest

_UNSETTLED = """FROM outbox o LEFT JOIN delivery d ON d.sink = :sink AND d.seq = o.seq
    WHERE o.seq > (SELECT low FROM sink WHERE name = :sink) AND d.how IS NULL"""

REPLAYED = "replayed"
"""The note of a row that waits because it was replayed."""
_ANEW = f"attempts = 0, first = NULL, last = NULL, error = NULL, note = '{REPLAYED}'"


class Backlog(NamedTuple):
    """What one sink has not settled yet, and what it refused."""

    waiting: int
    oldest: float | None
    dead: int
    delivered: int


class DeadLetter(NamedTuple):
    """A CloudEvent that a sink refused for good, or that got too old before it was delivered."""

    sink: str
    seq: int
    event_id: str
    type: str
    subject: str
    attempts: int
    first: float | None
    last: float | None
    reason: str
    body: bytes

    @property
    def id(self) -> str:
        return f"{self.sink}:{self.seq}"


def register(store: Store, sinks: Sequence[str], now: float) -> list[str]:
    """Give each configured sink a position; return the new ones.

    A new sink starts with what is pending now: the latest row of each pending scheduled event.
    """
    known = dict(store.connection.execute("SELECT name, absent FROM sink").fetchall())
    fresh = [name for name in sinks if name not in known]
    left = [name for name, absent in known.items() if absent is None and name not in sinks]
    back = [name for name, absent in known.items() if absent is not None and name in sinks]
    if not (fresh or left or back):
        return []
    with store.transaction() as db:
        db.executemany("UPDATE sink SET absent = ? WHERE name = ?", [(now, name) for name in left])
        db.executemany("UPDATE sink SET absent = NULL WHERE name = ?", [(name,) for name in back])
        for name in fresh:
            begin(db, name, pending_rows(db), now)
    return fresh


def pending_rows(db: sqlite3.Connection) -> set[int]:
    """The latest row of each pending scheduled event."""
    known = "SELECT key FROM tracked UNION SELECT event FROM drill WHERE open = 1"
    pending = {safe_id(key) for (key,) in db.execute(known)}
    latest = db.execute("SELECT key, MAX(seq) FROM outbox GROUP BY key")
    return {seq for key, seq in latest if key in pending}


def begin(db: sqlite3.Connection, name: str, waiting: Collection[int], now: float) -> None:
    """Create a position from which the sink gets these rows, then all later ones."""
    low = min(waiting) - 1 if waiting else newest(db)
    db.execute("INSERT INTO sink(name, low) VALUES (?, ?)", (name, low))
    rows = db.execute("SELECT seq FROM outbox WHERE seq > ?", (low,)).fetchall()
    db.executemany(
        "INSERT OR IGNORE INTO delivery(sink, seq, how, last) VALUES (?, ?, 'before', ?)",
        [(name, seq, now) for (seq,) in rows if seq not in waiting],
    )


def exempt(db: sqlite3.Connection, sink: str, event_id: str, now: float) -> None:
    """Never send this CloudEvent to the sink: it is about the sink itself."""
    about = "SELECT ?, seq, 'own', ? FROM outbox WHERE id = ?"
    db.execute(f"INSERT INTO delivery(sink, seq, how, last) {about}", (sink, now, event_id))


def replayable(store: Store, sink: str) -> int:
    """How many rows a replay sends to the sink."""
    own = "SELECT seq FROM delivery WHERE sink = ? AND how = 'own'"
    count = f"SELECT COUNT(*) FROM outbox WHERE seq NOT IN ({own})"
    return int(store.connection.execute(count, (sink,)).fetchone()[0])


def replay_sink(db: sqlite3.Connection, sink: str) -> None:
    """Send the sink everything that is still in the journal again."""
    settled = "UPDATE delivery SET how = NULL, {} WHERE sink = ? AND how NOT NULL AND how != 'own'"
    db.execute(settled.format(_ANEW), (sink,))
    older = "SELECT ?1, seq, ?2 FROM outbox WHERE seq <= (SELECT low FROM sink WHERE name = ?1)"
    db.execute(f"INSERT OR IGNORE INTO delivery(sink, seq, note) {older}", (sink, REPLAYED))
    db.execute("UPDATE sink SET low = 0 WHERE name = ?", (sink,))


def is_replayed(store: Store, sink: str, seq: int) -> bool:
    """Whether a row that waits goes to the sink again, or later than its turn."""
    sql = "SELECT 1 FROM delivery WHERE sink = ? AND seq = ? AND note = ?"
    return store.connection.execute(sql, (sink, seq, REPLAYED)).fetchone() is not None


def waits(store: Store, sink: str) -> bool:
    """Whether anything waits for the sink."""
    sql = "SELECT 1 FROM head WHERE sink = ? LIMIT 1"
    return store.connection.execute(sql, (sink,)).fetchone() is not None


def announced(store: Store, sink: str, limit: int) -> list[CloudEvent]:
    """The newest waiting CloudEvents that announce what Azure will do, and when."""
    sql = f"""SELECT o.id, o.type, o.key, o.body {_UNSETTLED}
        AND o.type IN (:new, :changed) ORDER BY o.seq DESC LIMIT :limit"""
    types = {"new": full_type("scheduled"), "changed": full_type("updated")}
    rows = store.connection.execute(sql, {"sink": sink, "limit": limit, **types})
    return [CloudEvent(*row) for row in rows]


def overtaken(store: Store, sink: str, key: str, seq: int) -> bool:
    """Whether a later state also waits for this sink; the result of an approval is no state."""
    sql = f"""SELECT 1 {_UNSETTLED} AND o.key = :key AND o.seq > :seq
        AND o.type NOT GLOB :other LIMIT 1"""
    values = {"sink": sink, "key": key, "seq": seq, "other": "azure.*.approval.*"}
    return store.connection.execute(sql, values).fetchone() is not None


def is_followed(store: Store, seq: int, kinds: Iterable[str], key: str | None = None) -> bool:
    """Whether a later CloudEvent of these kinds is recorded, of that key or of any."""
    one = "AND key = :key" if key is not None else ""
    sql = f"SELECT 1 FROM outbox WHERE seq > :seq AND type IN ({_types(kinds)}) {one} LIMIT 1"
    return store.connection.execute(sql, {"seq": seq, "key": key}).fetchone() is not None


def latest_transition(store: Store, key: str) -> CloudEvent | None:
    """The last one that is recorded about a scheduled event, if it is still there."""
    found = store.connection.execute(
        f"""SELECT id, type, key, body FROM outbox WHERE key = ?
        AND type IN ({_types(TRANSITIONS)}) ORDER BY seq DESC LIMIT 1""",
        (key,),
    ).fetchone()
    return CloudEvent(*found) if found else None


def _types(kinds: Iterable[str]) -> str:
    return ", ".join(f"'{full_type(kind)}'" for kind in sorted(kinds))


def backlog(store: Store, sink: str) -> Backlog:
    read = store.connection.execute
    waiting, oldest = read(
        f"SELECT COUNT(*), MIN(o.recorded) {_UNSETTLED}", {"sink": sink}
    ).fetchone()
    by_outcome = dict(
        read("SELECT how, COUNT(*) FROM delivery WHERE sink = ? GROUP BY how", (sink,)).fetchall()
    )
    return Backlog(waiting, oldest, by_outcome.get("dead", 0), by_outcome.get("delivered", 0))


_DEAD = """SELECT d.sink, d.seq, o.id, o.type, o.key, d.attempts, d.first, d.last,
    COALESCE(d.error, ''), o.body
    FROM delivery d JOIN outbox o USING (seq) WHERE d.how = 'dead'"""


def dead_letters(store: Store, sink: str | None = None, limit: int = 1000) -> list[DeadLetter]:
    rows = store.connection.execute(
        f"{_DEAD} AND (?1 IS NULL OR d.sink = ?1) ORDER BY d.seq LIMIT ?2", (sink, limit)
    )
    return [DeadLetter(*row) for row in rows]


def dead_letter(store: Store, letter_id: str) -> DeadLetter | None:
    sink, _, seq = letter_id.rpartition(":")
    found = store.connection.execute(
        f"{_DEAD} AND d.sink = ? AND CAST(d.seq AS TEXT) = ?", (sink, seq)
    ).fetchone()
    return DeadLetter(*found) if found else None


def replay_letter(db: sqlite3.Connection, letter: DeadLetter) -> None:
    """Send it again, with attempts counted from zero; later rows of its key may overtake it."""
    where = (letter.sink, letter.seq)
    dead = "UPDATE delivery SET how = NULL, {} WHERE sink = ? AND seq = ? AND how = 'dead'"
    db.execute(dead.format(_ANEW), where)
    db.execute("UPDATE sink SET low = MIN(low, ?2 - 1) WHERE name = ?1", where)


def drop_letter(db: sqlite3.Connection, letter: DeadLetter) -> None:
    db.execute(
        "UPDATE delivery SET how = 'dropped' WHERE sink = ? AND seq = ? AND how = 'dead'",
        (letter.sink, letter.seq),
    )


def checkpoints(store: Store, source: str) -> Mapping[str, str]:
    """How far an approval source was read, by the source's own names."""
    sql = "SELECT name, value FROM checkpoint WHERE source = ?"
    return dict(store.connection.execute(sql, (source,)).fetchall())
