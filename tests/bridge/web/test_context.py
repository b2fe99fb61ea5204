"""What all requests share."""

import asyncio

from support.guarded_bridge import scrape
from support.served_bridge import announce

from bridge.web.context import WebContext


async def test_metrics_do_not_ask_the_journal_more_than_once_a_second(running):
    asked = 0
    run = running.journal.run

    async def counted(operation):
        nonlocal asked
        asked += 1
        return await run(operation)

    running.journal.run = counted
    for _ in range(20):
        await scrape(running.http)
    assert 1 <= asked < 10


async def test_the_previous_readings_are_used_while_the_journal_does_not_answer(
    running, monkeypatch
):
    context = WebContext(running.runtime)
    await announce(running.journal, "E1")
    assert (await context.readings()).pending == 1

    async def never(_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("bridge.web.context._PATIENCE", 0.02)
    monkeypatch.setattr("bridge.web.context._READ_AGAIN", 0.0)
    monkeypatch.setattr(running.journal, "run", never)
    assert (await context.readings()).pending == 1


async def test_readiness_is_current(running):
    context = WebContext(running.runtime)
    assert context.readiness().ready
    running.journal.trouble = "the disk is full"
    assert [one.what for one in context.readiness().reasons] == ["journal"]
    running.journal.trouble = None
