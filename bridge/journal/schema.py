"""The tables, their migrations, and the check whether a file can be trusted."""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from bridge.platform import private_file

VERSION = 6
_HASHED, _HASH_BYTES = 6, 16
_LONG_ROW = 900


def row_bytes(length: int) -> int:
    """What a row takes on its pages, rather too much: a long row gets pages of its own."""
    return length * 3 // 2 + 48 + (4096 if length > _LONG_ROW else 0)


def _bytes(*columns: str) -> str:
    """The same in SQL."""
    length = " + ".join(f"LENGTH(CAST({column} AS BLOB))" for column in columns)
    return f"(({length}) * 3 / 2 + 48 + CASE WHEN ({length}) > {_LONG_ROW} THEN 4096 ELSE 0 END)"


def _owner(verified: str, otherwise: str = "unverified") -> str:
    return f"CASE WHEN {verified} THEN 'verified' ELSE '{otherwise}' END"


_SPACE = {
    "vote": (
        _owner("json_extract({row}.body, '$.verified')"),
        _bytes("{row}.event", "{row}.approver", "{row}.resource", "{row}.body"),
    ),
    "early": (
        _owner("json_type({row}.body, '$.identity') = 'text'"),
        _bytes("{row}.event", "{row}.body"),
    ),
    "message_key": (
        _owner("{row}.verified", otherwise="unverified_keys"),
        _bytes("{row}.key", "{row}.event", "{row}.at"),
    ),
    "unverified_outcome": ("'outcomes'", "{row}.bytes"),
}
"""For each table: whose space its rows take, and how much of it."""


def _accounts() -> Iterator[str]:
    """SQL that keeps `space` up to date with each table, starting with the rows that it has."""
    for table, (owner, size) in _SPACE.items():
        more, less = (
            f"UPDATE space SET bytes = bytes {sign} {size.format(row=row)}"
            f" WHERE owner = {owner.format(row=row)};"
            for sign, row in (("+", "NEW"), ("-", "OLD"))
        )
        yield f"CREATE TRIGGER {table}_added AFTER INSERT ON {table} BEGIN {more} END;"
        yield f"CREATE TRIGGER {table}_gone AFTER DELETE ON {table} BEGIN {less} END;"
        yield f"CREATE TRIGGER {table}_changed AFTER UPDATE ON {table} BEGIN {less} {more} END;"
        yield f"""UPDATE space SET bytes = bytes + (SELECT COALESCE(SUM({size.format(row="t")}), 0)
            FROM {table} t WHERE {owner.format(row="t")} = owner);"""


_HEADS = """INSERT INTO head SELECT name, MIN(o.seq), key FROM sink JOIN outbox o ON o.seq > low
    LEFT JOIN delivery d ON d.sink = name AND d.seq = o.seq WHERE how IS NULL {0} GROUP BY 1, 3;"""
_NEXT_HEAD = """INSERT INTO head SELECT * FROM (SELECT sink, (SELECT o.seq FROM outbox o
    LEFT JOIN delivery d ON d.sink = h.sink AND d.seq = o.seq
    WHERE o.key = h.key AND o.seq > h.seq AND d.how IS NULL ORDER BY o.seq LIMIT 1) next, key
    FROM head h WHERE {0}) WHERE next NOT NULL; DELETE FROM head WHERE {0};"""


def _heads() -> Iterator[str]:
    """SQL that keeps `head` up to date. To make settled rows wait again, write `low` as well."""
    anew = f"DELETE FROM head WHERE sink = NEW.name; {_HEADS.format('AND name = NEW.name')}"
    done = _NEXT_HEAD.format("sink = NEW.sink AND seq = NEW.seq")
    lost = _NEXT_HEAD.format("sink IN (SELECT name FROM sink) AND seq = OLD.seq")
    new = """INSERT INTO head SELECT name, NEW.seq, NEW.key FROM sink WHERE low < NEW.seq
        AND NOT EXISTS (SELECT 1 FROM head WHERE sink = name AND key = NEW.key);"""
    for name, event, body in (
        ("added", "INSERT ON outbox", new),
        ("lost", "DELETE ON outbox", lost),
        ("settled", "INSERT ON delivery WHEN NEW.how NOT NULL", done),
        ("retried", "UPDATE ON delivery WHEN NEW.how NOT NULL", done),
        ("begun", "INSERT ON sink", anew),
        ("repeated", "UPDATE OF low ON sink WHEN NEW.low <= OLD.low", anew),
        ("ended", "DELETE ON sink", "DELETE FROM head WHERE sink = OLD.name;"),
    ):
        yield f"CREATE TRIGGER head_{name} AFTER {event} BEGIN {body} END;"


_MIGRATIONS = {
    1: """
    CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE tracked(key TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE ended(key TEXT PRIMARY KEY, life INTEGER NOT NULL, at REAL NOT NULL) WITHOUT ROWID;
    CREATE TABLE outbox(
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        type TEXT NOT NULL,
        key TEXT NOT NULL,
        recorded REAL NOT NULL,
        body BLOB NOT NULL
    );
    CREATE INDEX outbox_key ON outbox(key, seq);
    -- All rows up to `low` are settled; `absent` is when the sink left the configuration.
    CREATE TABLE sink(name TEXT PRIMARY KEY, low INTEGER NOT NULL, absent REAL) WITHOUT ROWID;
    -- `how` is null while attempts fail, else delivered, dead, filtered, overtaken, before,
    -- dropped, or own: an audit about the sink itself, which it never gets.
    CREATE TABLE delivery(
        sink TEXT NOT NULL,
        seq INTEGER NOT NULL,
        how TEXT,
        attempts INTEGER NOT NULL DEFAULT 0,
        first REAL,
        last REAL,
        error TEXT,
        PRIMARY KEY (sink, seq)
    ) WITHOUT ROWID;
    CREATE INDEX delivery_seq ON delivery(seq);
    CREATE INDEX delivery_dead ON delivery(seq) WHERE how = 'dead';
    CREATE TRIGGER outbox_gone AFTER DELETE ON outbox BEGIN
        DELETE FROM delivery WHERE seq = OLD.seq;
    END;
    """,
    2: """
    -- One row for each voter: the body is a Vote as JSON; the resource is folded, or empty for all.
    CREATE TABLE vote(
        event TEXT NOT NULL,
        life INTEGER NOT NULL,
        approver TEXT NOT NULL,
        resource TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (event, life, approver, resource)
    ) WITHOUT ROWID;
    CREATE TABLE early(id INTEGER PRIMARY KEY, event TEXT NOT NULL, body TEXT NOT NULL, at REAL);
    -- What was said before: a message that comes again changes nothing.
    CREATE TABLE approval_key(
        key TEXT NOT NULL, event TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (key, event)
    ) WITHOUT ROWID;
    CREATE TABLE grants(
        event TEXT NOT NULL,
        life INTEGER NOT NULL,
        state TEXT NOT NULL,
        at REAL NOT NULL,
        PRIMARY KEY (event, life)
    ) WITHOUT ROWID;
    CREATE TABLE checkpoint(
        source TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (source, name)
    ) WITHOUT ROWID;
    """,
    # A sink's remark on a delivery.
    3: "ALTER TABLE delivery ADD COLUMN note TEXT;",
    4: """
    -- When this journal was begun: if something older comes again, it cannot know.
    INSERT OR IGNORE INTO meta VALUES ('born', strftime('%Y-%m-%dT%H:%M:%f+00:00', 'now'));
    CREATE TABLE reminded(
        event TEXT NOT NULL, life INTEGER NOT NULL, reminder TEXT NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (event, life, reminder)
    ) WITHOUT ROWID;
    """,
    5: """
    -- Rehearsals; `at` is when it became what it is. One of them is open at a time.
    CREATE TABLE drill(
        event TEXT PRIMARY KEY, open INTEGER NOT NULL, at REAL NOT NULL, body TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX drill_open ON drill(open) WHERE open = 1;
    """,
    6: f"""
    -- From here on, the body of `tracked` has the states that an event had in its life.
    -- What votes are about, as JSON; one row for all votes about the same state of an event.
    CREATE TABLE announced(id INTEGER PRIMARY KEY, body TEXT NOT NULL UNIQUE);
    -- In place of approval_key: the hash of each message's key, whatever its length.
    CREATE TABLE message_key(
        key BLOB NOT NULL, event TEXT NOT NULL, verified INTEGER NOT NULL, at REAL NOT NULL,
        PRIMARY KEY (key, event)
    ) WITHOUT ROWID;
    -- Which CloudEvents in the outbox are about votes of unverified senders.
    CREATE TABLE unverified_outcome(seq INTEGER PRIMARY KEY, bytes INTEGER NOT NULL);
    CREATE TRIGGER outbox_outcome_gone AFTER DELETE ON outbox BEGIN
        DELETE FROM unverified_outcome WHERE seq = OLD.seq;
    END;
    -- How much space votes and what comes with them take, by whose they are.
    CREATE TABLE space(owner TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO space
        VALUES ('verified', 0), ('unverified', 0), ('unverified_keys', 0), ('outcomes', 0);
    {" ".join(_accounts())}
    -- For each sink and key, the oldest row that the sink has not settled: what it may get next.
    CREATE TABLE head(sink TEXT, seq INTEGER, key TEXT, PRIMARY KEY (sink, seq)) WITHOUT ROWID;
    CREATE INDEX head_key ON head(sink, key); {_HEADS.format("")} {" ".join(_heads())}
    """,
}


class Newer(Exception):
    """A newer version wrote the file; this one never touches it."""


class Corrupt(Exception):
    """The file cannot be trusted; it must be set aside."""


def connect_file(path: Path) -> sqlite3.Connection:
    """Open, check and migrate the file; the result is safe to write.

    Only its owner may read a new file, and SQLite gives its companions the same mode.
    """
    private_file(path)
    _look_first(path)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_memory() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    migrate(connection)
    return connection


def _look_first(path: Path) -> None:
    """Check the version on a read-only connection: closing a writable one would move the log.

    The writable connection, opened next, finds all other problems.
    """
    try:
        asking = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
        with closing(asking):
            _refuse_newer(asking, path)
    except (sqlite3.Error, UnicodeDecodeError):
        return


def _refuse_newer(connection: sqlite3.Connection, path: Path) -> None:
    version = _version(connection)
    if version > VERSION:
        raise Newer(
            f"{path} was written by a newer version of the bridge (journal version {version}; this"
            f" one reads up to {VERSION}). Start the newer version, or set journal.newer: set-aside"
        )


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    try:
        _refuse_newer(connection, path)
        if _version(connection) == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_size_limit = 4194304")
        found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise Corrupt(str(found))
        migrate(connection)
    except sqlite3.OperationalError:
        raise
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        # Python cannot decode an error that quotes a damaged name.
        raise Corrupt(str(error)) from error


def migrate(connection: sqlite3.Connection) -> None:
    """Run each step in one transaction with its version number, so that a kill leaves no half."""
    for step in range(_version(connection) + 1, VERSION + 1):
        connection.executescript(
            f"BEGIN IMMEDIATE; {_MIGRATIONS[step]} PRAGMA user_version = {step}; COMMIT;"
        )
    if VERSION >= _HASHED and connection.execute("SELECT 1 FROM approval_key").fetchone():
        _hash_keys(connection)


def hashed(key: str) -> tuple[bytes, bool]:
    """A message's key as it is stored, and whether it belongs to a verified name.

    Keys of verified names start with U+001F, and no message can have such a key.
    """
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
    return digest[:_HASH_BYTES], key.startswith("\x1f")


def _hash_keys(connection: sqlite3.Connection) -> None:
    """Move the keys that an earlier version wrote to `message_key`, in one transaction."""
    rows = connection.execute("SELECT key, event, at FROM approval_key").fetchall()
    moved = [(*hashed(key), event, at) for key, event, at in rows]
    sql = "INSERT OR IGNORE INTO message_key(key, verified, event, at) VALUES (?, ?, ?, ?)"
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.executemany(sql, moved)
        connection.execute("DELETE FROM approval_key")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
