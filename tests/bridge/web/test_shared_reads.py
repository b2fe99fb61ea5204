"""Many ask the same at once: the journal is read once, and nobody gets what is too old."""

import asyncio
import sqlite3
import threading

import pytest
from support.until import until

from bridge.web.shared_reads import SharedReads


@pytest.fixture
async def busy(running):
    """Keeps the journal's thread busy until it is told to go on."""
    begun, go_on = threading.Event(), threading.Event()

    def wait(_):
        begun.set()
        assert go_on.wait(20)

    task = asyncio.create_task(running.journal.run(wait))
    yield begun, go_on
    go_on.set()
    await task


async def test_readers_that_wait_together_share_one_read(running, busy):
    begun, go_on = busy
    await until(begun.is_set)
    shared, reads = SharedReads(), []

    def ask(what):
        return asyncio.create_task(
            shared.answer(running.journal, what, lambda _: reads.append(what))
        )

    tasks = [ask("a") for _ in range(50)] + [ask("b")]
    await until(lambda: shared.done == 2)
    go_on.set()
    answers = await asyncio.gather(*tasks)
    assert reads == ["a", "b"]
    assert {answer.body for answer in answers} == {b"null"}


async def test_a_read_that_has_begun_is_not_shared(running):
    shared, begun, go_on = SharedReads(), threading.Event(), threading.Event()

    def slow(_):
        begun.set()
        assert go_on.wait(20)
        return "old"

    first = asyncio.create_task(shared.answer(running.journal, "a", slow))
    await until(begun.is_set)
    second = asyncio.create_task(shared.answer(running.journal, "a", lambda _: "new"))
    await until(lambda: shared.done == 2)
    go_on.set()
    assert [(await one).body for one in (first, second)] == [b'"old"', b'"new"']


async def test_an_error_reaches_all_who_wait_and_is_not_kept(running):
    shared = SharedReads()

    def fail(_):
        raise sqlite3.OperationalError("locked")

    asked = [shared.answer(running.journal, "a", fail) for _ in range(3)]
    found = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(one, sqlite3.Error) for one in found)
    assert (await shared.answer(running.journal, "a", lambda _: 1)).body == b"1"


async def test_one_that_leaves_takes_nothing_from_the_others(running, busy):
    begun, go_on = busy
    await until(begun.is_set)
    shared = SharedReads()
    first, second = (
        asyncio.create_task(shared.answer(running.journal, "a", lambda _: 1)) for _ in range(2)
    )
    await until(lambda: shared.done == 1)
    first.cancel()
    go_on.set()
    assert (await second).body == b"1"
