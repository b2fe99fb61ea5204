import asyncio
import os
import sqlite3
import stat
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.ballots import cast
from support.journal_tools import (
    NOW,
    about,
    clear_the_way,
    delivered,
    everything,
    fill_disk,
    forbid_writing,
    offered,
    open_store,
    opened,
    put_in_the_way,
    recorded,
    spoil,
    tracking,
)
from support.world import EVENT_ID

from bridge.common.errors import Unavailable
from bridge.core.state import State
from bridge.journal import Journal
from bridge.journal.votes import (
    Receipt,
    receive,
    votes,
)

EVENT = (EVENT_ID, 1)


async def test_a_journal_says_whether_it_is_new(path):
    async with opened(path) as journal:
        assert journal.origin == "new"
    async with opened(path) as journal:
        assert (journal.origin, journal.trouble, journal.generation) == ("continued", None, 0)


async def test_only_the_owner_can_use_the_state_directory(path):
    async with opened(path):
        assert path.parent.stat().st_mode & 0o777 == 0o700


def modes(path: Path) -> dict[str, int]:
    return {p.name.split("-20")[0]: stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()}


@pytest.fixture
def lavish():
    """A umask that removes no permissions."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("lavish")
async def test_only_the_owner_can_read_the_journal_and_its_companions_with_any_umask(path):
    async with opened(path) as journal:
        await journal.append([about("A")], NOW)
        assert modes(path) == dict.fromkeys(
            ("journal.db", "journal.db-wal", "journal.db-shm"), 0o600
        )
        await spoil(journal)
        await journal.append([about("B")], NOW)
        found = modes(path)
        assert "journal.db.corrupt" in found
        assert set(found.values()) == {0o600}


async def test_an_existing_journal_keeps_its_mode(path):
    async with opened(path):
        pass
    path.chmod(0o640)
    async with opened(path) as journal:
        await journal.append([about("A")], NOW)
        assert set(modes(path).values()) == {0o640}


async def test_a_journal_that_is_not_open_says_so():
    journal = Journal(Path("nowhere"))
    with pytest.raises(RuntimeError, match="not open"):
        await journal.load()
    await journal.close()


async def test_news_wake_all_listeners_and_no_one_else(path):
    async with opened(path) as journal:
        with journal.news() as first, journal.news() as second:
            await journal.commit(State(), [about("A")], NOW)
            assert first.is_set()
            assert second.is_set()
            first.clear()
            assert await journal.append([about("A"), about("B")], NOW) == 1
            assert first.is_set()
        first.clear()
        journal.announce()
        assert not first.is_set()


async def test_a_canceled_write_still_announces_news(path):
    begun, go_on = threading.Event(), threading.Event()

    def hold(_: str) -> None:
        begun.set()
        go_on.wait(10)

    async with opened(path, "sink") as journal:
        await journal.run(lambda store: store.connection.set_trace_callback(hold))
        with journal.news() as news:
            committing = asyncio.create_task(journal.commit(State(), [about("A")], NOW))
            await asyncio.to_thread(begun.wait, 10)
            committing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await committing
            assert news.is_set()
            go_on.set()
            assert await journal.run(lambda store: offered(store, "sink")) == ["A/1"]


async def test_a_programming_error_does_not_count_as_a_broken_file(path):
    async with opened(path) as journal:
        with pytest.raises(sqlite3.ProgrammingError):
            await journal.run(lambda store: store.connection.execute("SELECT ?"))
        with pytest.raises(sqlite3.IntegrityError):
            await journal.run(
                lambda store: store.connection.execute("INSERT INTO meta VALUES ('a', NULL)")
            )
        assert journal.trouble is None


async def test_on_a_full_disk_the_journal_continues_in_memory(path, caplog):
    async with opened(path, "sink") as journal:
        await journal.commit(tracking("A"), [about("A", 1)], NOW)
        await fill_disk(journal)
        await journal.commit(tracking("A", "B"), [about("B", size=60000), about("A", 2)], NOW)
        assert journal.trouble is not None
        assert f"{path} cannot be written: database or disk is full" in journal.trouble
        assert journal.generation == 0
        await journal.settle("sink", delivered("A/1"), NOW)
        assert await journal.run(lambda store: offered(store, "sink")) == ["B/1", "A/2"]
        assert set((await journal.load()).tracked) == {"A", "B"}
        assert [r.message for r in caplog.records] == ["journal.unwritable"]
        assert await journal.repair()
        assert (journal.trouble, journal.generation, journal.origin) == (None, 1, "new")
        assert await journal.run(recorded) == ["A/1", "B/1", "A/2"]
        assert not await journal.repair()
    with_file = open_store(path)
    assert everything(with_file, "sink") == ["B/1", "A/2"]
    with_file.close()


async def test_a_generator_of_cloudevents_is_not_used_up_by_the_attempt_that_failed(path):
    async with opened(path, "sink") as journal:
        await fill_disk(journal)
        await journal.commit(tracking("A"), (about(key, size=60000) for key in "AB"), NOW)
        assert journal.trouble
        assert await journal.run(recorded) == ["A/1", "B/1"]


async def test_closing_tries_to_save_what_is_only_in_memory(path):
    async with opened(path, "sink") as journal:
        await forbid_writing(journal)
        await journal.append([about("A")], NOW)
        assert journal.trouble
    file = open_store(path)
    assert everything(file, "sink") == ["A/1"]
    file.close()


async def test_a_repair_that_fails_is_tried_again(path):
    async with opened(path, "sink") as journal:
        await forbid_writing(journal)
        await journal.append([about("A")], NOW)
        away = put_in_the_way(path)
        assert not await journal.repair()
        assert journal.trouble
        clear_the_way(path, away)
        assert await journal.repair()
        assert await journal.run(recorded) == ["A/1"]


async def test_a_merge_that_the_disk_refuses_is_tried_again(path, monkeypatch):
    async with opened(path, "sink") as journal:
        await forbid_writing(journal)
        await journal.append([about("A")], NOW)
        with monkeypatch.context() as patched:
            patched.setattr("bridge.journal.recovery.connect_file", _full)
            assert not await journal.repair()
        assert await journal.repair()


def _full(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA query_only = ON")
    return connection


async def test_the_bridge_starts_even_if_the_file_cannot_be_opened(path):
    path.mkdir(parents=True)
    async with opened(path, "sink") as journal:
        assert journal.origin == "new"
        assert "unable to open database file" in (journal.trouble or "")
        await journal.commit(tracking("A"), [about("A")], NOW)
        assert await journal.run(lambda store: offered(store, "sink")) == ["A/1"]
        path.rmdir()
        assert await journal.repair()
        assert await journal.run(lambda store: offered(store, "sink")) == ["A/1"]


async def test_an_error_in_memory_is_raised(path):
    async with opened(path, "sink") as journal:
        await forbid_writing(journal)
        await journal.append([about("A")], NOW)
        with pytest.raises(sqlite3.OperationalError):
            await journal.run(lambda store: store.connection.execute("SELECT * FROM nothing"))


async def test_trim_goes_by_the_rules(path):
    async with opened(path, "sink") as journal:
        await journal.append([about("A"), about("B")], NOW)
        await journal.settle("sink", delivered("A/1"), NOW)
        found = await journal.trim(now=NOW + 9, keep=5.0, max_size=1 << 30, best_effort=[])
        assert found.removed == 1
        assert await journal.run(recorded) == ["B/1"]


async def test_what_must_be_durable_is_not_done_in_memory(tmp_path):
    journal = Journal(tmp_path / "journal.db")
    await journal.open()
    await forbid_writing(journal)
    receipt = Receipt([cast()])
    with pytest.raises(Unavailable, match="cannot be written"):
        await journal.durably(lambda store: receive(store, receipt, time.time()))
    assert journal.trouble
    assert await journal.run(lambda store: votes(store, *EVENT)) == []
    with pytest.raises(Unavailable, match="cannot be written"):
        await journal.durably(lambda store: receive(store, receipt, time.time()))
    assert await journal.repair()
    await journal.durably(lambda store: receive(store, receipt, datetime.now(UTC).timestamp()))
    assert await journal.run(lambda store: votes(store, *EVENT)) == [cast()]
    await journal.close()
