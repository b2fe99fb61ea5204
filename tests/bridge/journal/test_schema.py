import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from support.ballots import cast
from support.cloudevents import make
from support.journal_tools import offered
from support.world import EVENT_ID, NOON

from bridge.journal import schema
from bridge.journal.retention import space
from bridge.journal.schema import (
    _MIGRATIONS,
    VERSION,
    Corrupt,
    Newer,
    connect_file,
    connect_memory,
    migrate,
)
from bridge.journal.store import Store
from bridge.journal.votes import (
    Receipt,
    receive,
    seen,
    votes,
)

EVENT = (EVENT_ID, 1)
NOW = NOON.timestamp()


def tables(connection: sqlite3.Connection) -> set[tuple]:
    return set(connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql NOT NULL"))


def version(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.db"


def test_a_new_file_is_durable_and_has_the_current_version(path):
    connection = connect_file(path)
    assert version(connection) == VERSION
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
    connection.close()


def test_there_is_a_step_for_each_version():
    assert sorted(schema._MIGRATIONS) == list(range(1, VERSION + 1))


def test_migrating_again_changes_nothing(path):
    connection = connect_file(path)
    connection.execute("INSERT INTO meta VALUES ('a', '1')")
    before, kept = tables(connection), meta(connection)
    migrate(connection)
    connection.close()
    connection = connect_file(path)
    assert (tables(connection), version(connection)) == (before, VERSION)
    assert meta(connection) == kept
    assert kept.keys() == {"a", "born"}
    connection.close()


def meta(connection):
    return dict(connection.execute("SELECT name, value FROM meta").fetchall())


def test_a_journal_knows_when_it_was_created(path):
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    connection = connect_file(path)
    moment = datetime.fromisoformat(meta(connection)["born"])
    assert before <= moment <= datetime.now(UTC)
    connection.close()


@pytest.mark.parametrize("step", range(1, VERSION + 1))
def test_each_step_leads_to_what_a_new_file_has(path, monkeypatch, step):
    monkeypatch.setattr(schema, "VERSION", step)
    connect_file(path).close()
    monkeypatch.undo()
    connection, fresh = connect_file(path), connect_memory()
    assert tables(connection) == tables(fresh)
    connection.close()
    fresh.close()


def written_before_hashes(path, monkeypatch, *keys):
    """A journal of version 5, with these keys in plain text."""
    monkeypatch.setattr(schema, "VERSION", 5)
    connection = connect_file(path)
    connection.executemany("INSERT INTO approval_key VALUES (?, ?, 1)", keys)
    body = '{"verified": false}'
    connection.execute("INSERT INTO vote VALUES ('E', 1, 'a', '', ?)", (body,))
    connection.close()
    monkeypatch.undo()


def test_the_keys_of_an_earlier_version_are_recognized(path, monkeypatch):
    keys = [("k", "E"), ("\x1forders\x1fk", "E"), ("/source\x1fid", "F")]
    written_before_hashes(path, monkeypatch, *keys)
    store = Store(connect_file(path))
    assert all(seen(store, *key) for key in keys)
    assert not seen(store, "k", "F")
    assert store.connection.execute("SELECT COUNT(*) FROM approval_key").fetchone() == (0,)
    sizes = space(store.connection)
    assert 0 < sizes.verified < sizes.unverified_keys
    assert sizes.unverified > 0
    assert [len(row[0]) for row in store.connection.execute("SELECT key FROM message_key")] == [
        16
    ] * 3
    store.close()


def test_what_waits_in_a_journal_of_an_earlier_version_is_still_delivered(path, monkeypatch):
    monkeypatch.setattr(schema, "VERSION", 5)
    connection = connect_file(path)
    connection.executemany("INSERT INTO sink VALUES (?, ?, NULL)", [("behind", 0), ("ahead", 2)])
    sql = "INSERT INTO outbox(id, type, key, recorded, body) VALUES (?, 'type', ?, 1, '{}')"
    connection.executemany(sql, [("A/1", "A"), ("B/1", "B"), ("A/2", "A"), ("C/1", "C")])
    done = "INSERT INTO delivery(sink, seq, how) VALUES ('behind', ?, ?)"
    connection.executemany(done, [(1, "delivered"), (2, None)])
    connection.close()
    monkeypatch.undo()
    store = Store(connect_file(path))
    assert offered(store, "behind") == ["B/1", "A/2", "C/1"]
    assert offered(store, "ahead") == ["A/2", "C/1"]
    store.close()


DYING = """
import os, sys
from pathlib import Path
from bridge.journal import schema
hash_keys = schema._hash_keys

def dying(connection):
    die = lambda sql: sql.startswith(sys.argv[2]) and os.kill(os.getpid(), 9)
    connection.set_trace_callback(die)
    hash_keys(connection)

schema._hash_keys = dying
schema.connect_file(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("statement", ["DELETE", "COMMIT"])
def test_a_kill_while_keys_are_hashed_loses_none(path, monkeypatch, statement):
    keys = [(f"k-{n}", "E") for n in range(20)]
    written_before_hashes(path, monkeypatch, *keys)
    command = [sys.executable, "-c", DYING, str(path), statement]
    assert subprocess.run(command, check=False, timeout=25).returncode == -signal.SIGKILL
    plain = sqlite3.connect(path)
    assert plain.execute("SELECT COUNT(*) FROM approval_key").fetchone() == (20,)
    plain.close()
    store = Store(connect_file(path))
    assert all(seen(store, *key) for key in keys)
    store.close()


def test_a_step_that_breaks_off_leaves_the_version_before(path, monkeypatch):
    steps = {**schema._MIGRATIONS, 1: f"{schema._MIGRATIONS[1]} SELECT nothing;"}
    monkeypatch.setattr(schema, "_MIGRATIONS", steps)
    with pytest.raises(sqlite3.OperationalError):
        connect_file(path)
    monkeypatch.undo()
    plain = sqlite3.connect(path)
    assert (version(plain), tables(plain)) == (0, set())
    plain.close()
    connection = connect_file(path)
    assert version(connection) == VERSION
    connection.close()


def test_a_file_of_a_newer_version_is_never_touched(path):
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(Newer, match=rf"journal\.db was written by a newer version.*{VERSION + 1}"):
        connect_file(path)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["journal.db"]


@pytest.mark.parametrize("content", [b"not a database at all, but long enough" * 40, b"\0" * 5000])
def test_a_file_that_is_not_a_database_is_corrupt(path, content):
    path.write_bytes(content)
    with pytest.raises(Corrupt):
        connect_file(path)


def test_a_page_that_was_overwritten_is_found_at_the_start(path):
    connection = connect_file(path)
    for n in range(500):
        connection.execute("INSERT INTO meta VALUES (?, ?)", (f"name-{n}", "value" * 20))
    connection.close()
    body = bytearray(path.read_bytes())
    for page in range(10, len(body) // 4096):
        body[page * 4096 : page * 4096 + 200] = b"\xff" * 200
    path.write_bytes(body)
    with pytest.raises(Corrupt):
        connect_file(path)


def test_a_damaged_name_that_is_not_text_is_corrupt_too(path):
    connect_file(path).close()
    body = path.read_bytes()
    assert body.count(b"CREATE TABLE vote") == 1
    place = body.index(b"CREATE TABLE vote") - len("tablevotevote") - 1
    torn = body[place:].replace(b"votevote", b"\xe8\xe8\xe8\xe8vote", 1)
    path.write_bytes(body[:place] + torn.replace(b"CREATE TABLE vote", b"CREATE TABLE ((((", 1))
    with pytest.raises(Corrupt):
        connect_file(path)


def test_a_file_that_cannot_be_opened_is_not_corrupt(path):
    path.mkdir()
    with pytest.raises(sqlite3.OperationalError):
        connect_file(path)


@pytest.fixture
def store():
    return Store(connect_memory())


def ids(store):
    return [row[0] for row in store.connection.execute("SELECT id FROM outbox ORDER BY seq")]


def test_an_older_journal_gains_the_tables_and_keeps_what_it_has(tmp_path):
    path = tmp_path / "journal.db"
    old = sqlite3.connect(path, isolation_level=None)
    old.executescript(f"BEGIN; {_MIGRATIONS[1]} PRAGMA user_version = 1; COMMIT;")
    Store(old).append([make()], NOW)
    old.close()
    store = Store(connect_file(path))
    receive(store, Receipt([cast()]), NOW)
    assert votes(store, *EVENT) == [cast()]
    assert ids(store) == [make().id]
    store.close()
