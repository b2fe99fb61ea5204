from support.guarded_bridge import scrape


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
