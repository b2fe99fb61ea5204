"""A journal that is lost, or cannot be written, while the poller runs."""

from support.journal_tools import forbid_writing
from support.polling import kinds

from bridge.journal import Journal
from bridge.journal.store import Store


async def spoil(journal: Journal) -> None:
    def damage(store: Store) -> None:
        store.connection.execute("UPDATE tracked SET body = 'no json'")
        store.connection.execute("INSERT OR IGNORE INTO tracked VALUES ('X', 'no json')")

    await journal.run(damage)
    await journal.load()


async def test_a_lost_journal_is_followed_by_a_snapshot_and_what_is_pending(bridge):
    bridge.world.create(type="Reboot", notice="15m")
    await bridge.poll(2)
    before = await bridge.told()
    await spoil(bridge.journal)
    assert await bridge.told() == []
    await bridge.poll(2)
    told = await bridge.told()
    assert kinds(told) == ["scheduled", "source.snapshot"]
    assert told[0]["id"] == before[0]["id"]
    assert told[1]["data"]["journal"] == "quarantined"
    assert await bridge.journal.run(lambda s: s.recall("vm_id")) is not None
    assert await bridge.journal.run(lambda s: s.recall("instance")) is not None


async def test_a_journal_that_is_lost_between_reading_and_writing_loses_nothing(
    bridge, monkeypatch
):
    await bridge.poll()
    event = bridge.world.create(type="Reboot", notice="15m")
    bridge.world.create(type="Freeze", notice="15m")
    await bridge.poll()
    bridge.world.cancel(event.name)
    commit = bridge.journal.commit

    async def too_late(*args, **keys):
        await spoil(bridge.journal)
        monkeypatch.setattr(bridge.journal, "commit", commit)
        return await commit(*args, **keys)

    monkeypatch.setattr(bridge.journal, "commit", too_late)
    await bridge.poll()
    assert await bridge.transitions() == ["canceled"]
    assert (await bridge.journal.load()).tracked == {}
    await bridge.poll(2)
    told = await bridge.told()
    assert kinds(told) == ["canceled", "scheduled", "source.snapshot"]
    assert told[1]["data"]["eventType"] == "Freeze"


async def test_the_state_is_read_again_when_the_file_can_be_written_again(bridge):
    await bridge.poll()
    await forbid_writing(bridge.journal)
    bridge.world.create(type="Reboot", notice="15m")
    await bridge.poll(2)
    assert bridge.journal.trouble
    assert await bridge.transitions() == ["scheduled"]
    assert await bridge.journal.repair()
    await bridge.poll(2)
    assert await bridge.transitions() == ["scheduled"]
