"""Files that the journal does not trust: corrupt, newer, or of another VM."""

import gc
import sqlite3
from pathlib import Path

import pytest
from support.journal_tools import (
    NOW,
    about,
    clear_the_way,
    forbid_writing,
    offered,
    opened,
    put_in_the_way,
    recorded,
    spoil,
    tracking,
)

from bridge.core.state import State
from bridge.journal import Journal, Newer, SetAside
from bridge.journal.schema import VERSION


def kept_aside(path: Path) -> list[str]:
    return sorted(p.name for p in path.parent.glob("journal.db.*-*"))


async def test_a_newer_journal_is_refused(path):
    path.parent.mkdir()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    journal = Journal(path)
    with pytest.raises(Newer):
        await journal.open()
    await journal.close()
    assert kept_aside(path) == []


async def test_a_newer_journal_that_becomes_readable_later_is_set_aside_too(path):
    """The file cannot be opened at the start; what was recorded in memory is kept."""
    path.mkdir(parents=True)
    journal = Journal(path, "set-aside")
    await journal.open()
    await journal.register(["sink"], NOW)
    await journal.append([about("A")], NOW)
    path.rmdir()
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    journal.newer = "refuse"
    assert not await journal.repair()
    assert kept_aside(path) == []
    journal.newer = "set-aside"
    assert await journal.repair()
    assert [name.startswith("journal.db.newer-") for name in kept_aside(path)] == [True]
    assert await journal.run(lambda store: offered(store, "sink")) == ["A/1"]
    await journal.close()


async def test_a_corrupt_file_is_set_aside_at_the_start(path):
    path.parent.mkdir()
    path.write_bytes(b"garbage " * 1000)
    async with opened(path, "sink") as journal:
        assert (journal.origin, journal.trouble) == ("quarantined", None)
        (name,) = kept_aside(path)
        assert name.startswith("journal.db.corrupt-")
        assert (path.parent / name).read_bytes() == b"garbage " * 1000
        assert journal.quarantined == [f"{name}: file is not a database"]


async def test_a_page_that_was_overwritten_sets_the_whole_file_aside(path):
    async with opened(path, "sink") as journal:
        await journal.commit(tracking("A"), [about("A", size=60000)], NOW)
    body = bytearray(path.read_bytes())
    body[4096:] = b"\xff" * (len(body) - 4096)
    path.write_bytes(body)
    async with opened(path, "sink") as journal:
        assert (journal.origin, len(kept_aside(path))) == ("quarantined", 1)
        await journal.append([about("B")], NOW)
        assert path.with_name("journal.db-wal").exists()


async def test_a_corrupt_file_that_cannot_be_moved_is_replaced_by_memory(path, monkeypatch):
    path.parent.mkdir()
    path.write_bytes(b"garbage " * 1000)

    def refuse(*_):
        raise PermissionError("not allowed")

    with monkeypatch.context() as patched:
        patched.setattr("bridge.journal.journal.set_aside", refuse)
        journal = Journal(path)
        await journal.open()
    await journal.register(["sink"], NOW)
    assert journal.origin == "quarantined"
    assert "not allowed" in (journal.trouble or "")
    await journal.append([about("A")], NOW)
    assert await journal.repair()
    assert journal.trouble is None
    assert len(kept_aside(path)) == 1
    assert await journal.run(lambda store: offered(store, "sink")) == ["A/1"]
    await journal.close()


async def test_a_file_found_corrupt_is_replaced_and_the_commit_is_refused(path):
    async with opened(path, "sink") as journal:
        await journal.commit(tracking("A"), [about("A", size=60000)], NOW)
        await spoil(journal)
        with pytest.raises(SetAside):
            await journal.commit(tracking("A"), [about("A", 2)], NOW)
        assert (journal.generation, journal.origin) == (1, "quarantined")
        assert (await journal.load(), await journal.run(recorded)) == (State(), [])
        await journal.commit(tracking("A"), [about("A")], NOW)
        assert await journal.run(lambda store: offered(store, "sink")) == ["A/1"]


async def test_everything_but_a_commit_continues_in_the_new_file(path):
    async with opened(path, "sink") as journal:
        await journal.commit(tracking("A"), [about("A", size=60000)], NOW)
        await spoil(journal)
        assert await journal.append([about("vm-0")], NOW) == 1
        assert journal.generation == 1
        assert await journal.run(lambda store: offered(store, "sink")) == ["vm-0/1"]
        await spoil(journal)
        assert await journal.register(["sink", "more"], NOW) == []
        assert journal.generation == 2
        assert len(journal.quarantined) == 2


async def test_a_commit_for_an_earlier_journal_is_refused(path):
    async with opened(path, "sink") as journal:
        await forbid_writing(journal)
        await journal.commit(tracking("A"), [about("A")], NOW, generation=0)
        await journal.repair()
        with pytest.raises(SetAside):
            await journal.commit(tracking("B"), [about("B")], NOW, generation=0)
        assert set((await journal.load()).tracked) == {"A"}
        await journal.commit(tracking("B"), [about("B")], NOW, generation=1)


async def test_text_that_is_not_utf_8_makes_a_file_corrupt(path):
    async with opened(path, "sink") as journal:
        await journal.commit(tracking("A"), [], NOW)
        await journal.run(
            lambda store: store.connection.execute(
                "UPDATE tracked SET body = CAST(X'FFFE' AS TEXT)"
            )
        )
        assert await journal.load() == State()
        assert (journal.generation, len(kept_aside(path))) == (1, 1)
        await journal.append([about("B")], NOW)
        gc.collect()
        assert path.with_name("journal.db-wal").exists()


async def test_an_unreadable_state_makes_a_file_corrupt(path):
    async with opened(path, "sink") as journal:
        await journal.commit(tracking("A"), [], NOW)
        await journal.run(
            lambda store: store.connection.execute("UPDATE tracked SET body = '{\"event\": 1}'")
        )
        assert await journal.load() == State()
        assert (journal.generation, len(kept_aside(path))) == (1, 1)
        await journal.append([about("B")], NOW)
        gc.collect()
        assert path.with_name("journal.db-wal").exists()


async def test_our_own_file_is_claimed_once(path):
    async with opened(path, "sink") as journal:
        await journal.claim("vm-1")
        await journal.commit(tracking("A"), [about("A")], NOW)
        await journal.claim("vm-1")
        assert (journal.generation, journal.origin) == (0, "new")
    async with opened(path) as journal:
        await journal.claim("vm-1")
        assert journal.origin == "continued"
        assert await journal.run(recorded) == ["A/1"]


async def test_a_file_that_came_with_another_vms_image_is_set_aside(path):
    async with opened(path, "sink") as journal:
        await journal.claim("vm-1")
        await journal.commit(tracking("A"), [about("A")], NOW)
    async with opened(path, "sink") as journal:
        await journal.claim("vm-2")
        assert (journal.generation, journal.origin) == (1, "quarantined")
        assert (await journal.load(), await journal.run(recorded)) == (State(), [])
        assert await journal.run(lambda store: store.recall("vm_id")) == "vm-2"
        (name,) = kept_aside(path)
        assert name.startswith("journal.db.foreign-")
        assert journal.quarantined == [f"{name}: it belongs to VM vm-1"]
        assert journal.last_set_aside == f"{name} (it belongs to VM vm-1)"
        await journal.append([about("B")], NOW)
        assert await journal.run(lambda store: offered(store, "sink")) == ["B/1"]


async def test_a_foreign_file_that_becomes_readable_is_not_adopted(path):
    async with opened(path, "sink") as journal:
        await journal.claim("vm-1")
        await journal.commit(tracking("A"), [about("A")], NOW)
    away = put_in_the_way(path)
    async with opened(path, "sink") as journal:
        await journal.claim("vm-2")
        await journal.commit(tracking("B"), [about("B")], NOW)
        clear_the_way(path, away)
        assert await journal.repair()
        assert await journal.run(recorded) == ["B/1"]
        assert set((await journal.load()).tracked) == {"B"}
        assert [name.split("-")[0] for name in kept_aside(path)] == ["journal.db.foreign"]
        assert journal.origin == "quarantined"


async def test_a_foreign_file_is_set_aside_even_if_it_cannot_be_written(path):
    async with opened(path, "sink") as journal:
        await journal.claim("vm-1")
        await forbid_writing(journal)
        await journal.append([about("A")], NOW)
        assert journal.trouble
        await journal.claim("vm-2")
        assert journal.trouble is None
        assert await journal.run(recorded) == []
        assert not await journal.repair()


async def test_a_file_that_became_corrupt_meanwhile_is_replaced_by_what_is_in_memory(path):
    async with opened(path, "sink") as journal:
        await journal.commit(tracking("A"), [about("A")], NOW)
        await forbid_writing(journal)
        await journal.append([about("B")], NOW)
        path.write_bytes(b"garbage " * 1000)
        assert await journal.repair()
        assert await journal.run(lambda store: offered(store, "sink")) == ["A/1", "B/1"]
        assert len(kept_aside(path)) == 1
