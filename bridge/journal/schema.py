"""The tables, their migrations, and the check whether a file can be trusted."""

import sqlite3
from contextlib import closing
from pathlib import Path

from bridge.platform import private_file

VERSION = 6

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
        event TEXT NOT NULL,
        life INTEGER NOT NULL,
        reminder TEXT NOT NULL,
        at REAL NOT NULL,
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
    6: """
    -- From here on, the body of `tracked` has the states that an event had in its life.
    -- What votes are about, as JSON; one row for all votes about the same state of an event.
    CREATE TABLE announced(id INTEGER PRIMARY KEY, body TEXT NOT NULL UNIQUE);
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
    except sqlite3.Error:
        return


def _refuse_newer(connection: sqlite3.Connection, path: Path) -> None:
    version = _version(connection)
    if version > VERSION:
        raise Newer(
            f"{path} was written by a newer version of the bridge (journal version {version}; "
            f"this one reads up to {VERSION}). Start the newer version, or move all its files away."
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
    except sqlite3.DatabaseError as error:
        raise Corrupt(str(error)) from error


def migrate(connection: sqlite3.Connection) -> None:
    """Run each step in one transaction with its version number, so that a kill leaves no half."""
    for step in range(_version(connection) + 1, VERSION + 1):
        connection.executescript(
            f"BEGIN IMMEDIATE; {_MIGRATIONS[step]} PRAGMA user_version = {step}; COMMIT;"
        )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
