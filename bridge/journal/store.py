"""The state and the outbox in SQL: every public method that writes uses one transaction."""

import sqlite3
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from bridge.core.cloudevent import CloudEvent, full_type
from bridge.core.state import Ended, Ends, State, decode_tracked, encode_tracked, moment
from bridge.journal.schema import Corrupt

T = TypeVar("T")
Then = Callable[[sqlite3.Connection], object]
"""What else a transaction writes."""

_IN_STATE = frozenset({"incarnation", "last_good", "settle_until", "boot_id"})
"""What a state has in `meta`."""
_UNVERIFIED = (b'"verified": false', b'"verified":false')
"""Only as a field: inside of text, quotes are escaped."""
_ON_VOTES = frozenset(full_type(kind) for kind in ("approval.recorded", "approval.refused"))


class Row(NamedTuple):
    """A CloudEvent in the outbox, with one sink's attempts so far."""

    seq: int
    event: CloudEvent
    recorded: float
    attempts: int = 0
    first: float | None = None


class Settlement(NamedTuple):
    """The result for one CloudEvent at one sink; `how` is None when it must be tried again."""

    id: str
    how: str | None
    error: str | None = None
    tried: bool = True
    note: str | None = None


class Store:
    """One SQLite database, the file or its stand-in in memory; used from one thread at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.counted: dict[object, Any] = {}
        """What `votes` knows about votes without reading them again; empty when in doubt."""
        self._readings: dict[object, Any] = {}
        self._others = 0
        self._written: State | None = None

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def transaction(self, *, keeps_state: bool = False) -> Generator[sqlite3.Connection]:
        """All writes go through here, and are on disk when it ends.

        One that *keeps_state* writes nothing that `load` or a drill consists of.
        """
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield self.connection
            self.connection.execute("COMMIT")
        except BaseException:
            self.counted.clear()
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise
        finally:
            if not keeps_state:
                self.counted.clear()
                self._readings.clear()
                self._written = None

    @contextmanager
    def joined(self) -> Generator[sqlite3.Connection]:
        """The running transaction, or one of its own, which keeps the state."""
        if self.connection.in_transaction:
            yield self.connection
            return
        with self.transaction(keeps_state=True) as db:
            yield db

    def cached(self, read: Callable[["Store"], T]) -> T:
        """What *read* makes of the state; it reads again only after a commit that may change it."""
        if self.connection.in_transaction:
            return read(self)
        self._notice_others()
        if read not in self._readings:
            self._readings[read] = read(self)
        found: T = self._readings[read]
        return found

    def _notice_others(self) -> None:
        """Forget what was read before another process wrote."""
        [others] = self.connection.execute("PRAGMA data_version").fetchone()
        if others != self._others:
            self._others = others
            self._readings.clear()
            self.counted.clear()

    def recall(self, name: str) -> str | None:
        found = self.connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return found[0] if found else None

    def remember(self, **values: str | None) -> None:
        with self.transaction(keeps_state=not values.keys() & _IN_STATE) as db:
            self._write_meta(db, values)

    @staticmethod
    def _write_meta(db: sqlite3.Connection, values: dict[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                db.execute("DELETE FROM meta WHERE name = ?", (name,))
            else:
                db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def load(self) -> State:
        """The state as of the last commit; raises `Corrupt` when it is not readable."""
        try:
            return self._load()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Corrupt(f"the state cannot be read: {error!r}") from error

    def _load(self) -> State:
        read = self.connection.execute
        incarnation = self.recall("incarnation")
        return State(
            tracked={k: decode_tracked(body) for k, body in read("SELECT * FROM tracked")},
            ended={
                key: Ended(life, datetime.fromtimestamp(at, UTC))
                for key, life, at in read("SELECT * FROM ended ORDER BY at")
            },
            # Text stays text: 2017-03-01 needs it back exactly as received.
            incarnation=incarnation[1:]
            if incarnation and incarnation[0] == "s"
            else _int(incarnation),
            last_good=moment(self.recall("last_good")),
            settle_until=moment(self.recall("settle_until")),
            boot_id=self.recall("boot_id"),
        )

    def commit(
        self, state: State, events: Iterable[CloudEvent], now: float, **meta: str | None
    ) -> int:
        """Commit the document and its CloudEvents together; from here on, nothing is lost."""
        with self.transaction() as db:
            self._write_state(db, self._written, state)
            self._write_meta(db, meta)
            new = self.add(db, events, now)
        self._written = state
        return new

    def append(self, events: Iterable[CloudEvent], now: float, then: Then | None = None) -> int:
        """Record CloudEvents that do not come from a document; return how many were new.

        *then* belongs to the same transaction, and runs only if some were new.
        """
        with self.transaction(keeps_state=then is None) as db:
            new = self.add(db, events, now)
            if new and then is not None:
                then(db)
            return new

    @staticmethod
    def add(db: sqlite3.Connection, events: Iterable[CloudEvent], now: float) -> int:
        """Add CloudEvents to a running transaction; return how many were new."""
        sql = "INSERT OR IGNORE INTO outbox(id, type, key, recorded, body) VALUES (?, ?, ?, ?, ?)"
        count = 0
        for event in events:
            done = db.execute(sql, (event.id, event.type, event.key, now, event.body))
            if done.rowcount and is_of_unverified(event):
                row = (done.lastrowid, len(event.body) * 5 // 4 + 256)
                db.execute("INSERT INTO unverified_outcome VALUES (?, ?)", row)
            count += done.rowcount
        return count

    def _write_state(self, db: sqlite3.Connection, before: State | None, state: State) -> None:
        """Write what differs from *before*, which this store has written; None: write it all."""
        if before is None:
            before = State()
            db.execute("DELETE FROM tracked")
            db.execute("DELETE FROM ended")
        gone = [(key,) for key in before.tracked if key not in state.tracked]
        db.executemany("DELETE FROM tracked WHERE key = ?", gone)
        db.executemany(
            "INSERT OR REPLACE INTO tracked VALUES (?, ?)",
            [(key, encode_tracked(one)) for key, one in _changed(before.tracked, state.tracked)],
        )
        forgotten, ended = Ends.of(state.ended).since(before.ended)
        db.executemany("DELETE FROM ended WHERE key = ?", [(key,) for key in forgotten])
        db.executemany(
            "INSERT OR REPLACE INTO ended VALUES (?, ?, ?)",
            [(key, end.life, end.at.timestamp()) for key, end in ended],
        )
        mark = "s" if isinstance(state.incarnation, str) else ""
        self._write_meta(
            db,
            {
                "incarnation": None if state.incarnation is None else f"{mark}{state.incarnation}",
                "last_good": _text(state.last_good),
                "settle_until": _text(state.settle_until),
                "boot_id": state.boot_id,
            },
        )

    def unsettled(
        self,
        sink: str,
        limit: int,
        blocked: frozenset[str],
        only: str | None = None,
        after: int = 0,
    ) -> list[Row]:
        """For each key the oldest row that the sink has not settled, if it comes after row *after*.

        The cost does not depend on how many rows wait or are settled, only on the blocked keys.
        """
        one = "AND key = :only" if only else ""
        sql = f"SELECT seq, key FROM head WHERE sink = :sink AND seq > :after {one} ORDER BY seq"
        heads = self.connection.execute(sql, {"sink": sink, "after": after, "only": only})
        free = (seq for seq, key in heads if key not in blocked)
        return self._rows(sink, list(islice(free, limit)))

    def _rows(self, sink: str, numbers: list[int]) -> list[Row]:
        found = self.connection.execute(
            f"""SELECT o.seq, o.id, o.type, o.key, o.body, o.recorded, d.attempts, d.first
            FROM outbox o LEFT JOIN delivery d ON d.sink = ? AND d.seq = o.seq
            WHERE o.seq IN ({", ".join(map(str, numbers))}) ORDER BY o.seq""",
            (sink,),
        )
        return [
            Row(seq, CloudEvent(*event), recorded, attempts or 0, first)
            for seq, *event, recorded, attempts, first in found
        ]

    def settle(self, sink: str, verdicts: Sequence[Settlement], now: float) -> None:
        """Record attempts and outcomes, and move the low-water mark up as far as possible.

        Rows are identified by the CloudEvent's id: numbers change when a stand-in is merged back.
        """
        with self.transaction(keeps_state=True) as db:
            db.executemany(
                """INSERT INTO delivery(sink, seq, how, attempts, first, last, error, note)
                SELECT :sink, seq, :how, :tried, :now, :now, :error, :note FROM outbox
                WHERE id = :id
                ON CONFLICT(sink, seq) DO UPDATE SET how = :how, attempts = attempts + :tried,
                first = COALESCE(first, :now), last = :now, error = COALESCE(:error, error),
                note = IIF(:how IS NULL, note, :note) WHERE how IS NULL""",
                [
                    {"sink": sink, "how": v.how, "tried": int(v.tried), "now": now,
                     "error": v.error, "note": v.note, "id": v.id}
                    for v in verdicts
                ],
            )  # fmt: skip
            self._advance(db, sink)

    @staticmethod
    def _advance(db: sqlite3.Connection, sink: str) -> None:
        first = db.execute("SELECT MIN(seq) FROM head WHERE sink = ?", (sink,)).fetchone()[0]
        low = newest(db) if first is None else first - 1
        db.execute("UPDATE sink SET low = ?1 WHERE name = ?2 AND low < ?1", (low, sink))


def _changed(before: Mapping[str, T], after: Mapping[str, T]) -> list[tuple[str, T]]:
    """What is new or different; most of it is the same object, which is quick to compare."""
    return [(k, v) for k, v in after.items() if (old := before.get(k)) is not v and old != v]


def is_of_unverified(event: CloudEvent) -> bool:
    """Whether it is about a vote whose sender did not prove its name."""
    return event.type in _ON_VOTES and any(mark in event.body for mark in _UNVERIFIED)


def born(store: Store) -> datetime | None:
    """When this journal was created: it cannot recognize any message from before that."""
    return moment(store.recall("born"))


def newest(db: sqlite3.Connection) -> int:
    """The highest number ever assigned, even if its row is deleted."""
    found = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'").fetchone()
    return int(found[0]) if found else 0


def _int(text: str | None) -> int | None:
    return int(text) if text is not None else None


def _text(value: datetime | None) -> str | None:
    return value.isoformat() if value else None
