"""A SIEM that is down for an hour, by a clock that runs fast."""

import asyncio
import time
from types import SimpleNamespace

import pytest
from support.deliveries import fleet_of, ids
from support.journal_tools import about, everything, opened
from support.splunk_server import TOKEN, splunk_server
from support.until import until

from bridge.delivery import dispatcher
from bridge.journal.cursors import dead_letters
from bridge.plugins import SinkSettings
from bridge.plugins.sinks import find_sink

SPEED = 3600
"""An hour passes in a second."""
NAMES = ("record", "siem")


@pytest.fixture
def clock(monkeypatch):
    """The dispatchers' own time, and their waits, are that much faster."""
    began, real, heard = time.time(), time.monotonic(), dispatcher.heard

    def passed() -> float:
        return (time.monotonic() - real) * SPEED

    async def hear(news, seconds):
        return await heard(news, None if seconds is None else seconds / SPEED)

    fast = SimpleNamespace(time=lambda: began + passed(), monotonic=passed)
    monkeypatch.setattr(dispatcher, "time", fast)
    monkeypatch.setattr(dispatcher, "heard", hear)
    return fast


def configured(kind: str, **keys) -> SinkSettings:
    return find_sink(kind).settings.model_validate({"type": kind, **keys})


def ordered(found: list[str]) -> dict[str, list[str]]:
    keys = dict.fromkeys(name.partition("/")[0] for name in found)
    return {key: [name for name in found if name.startswith(f"{key}/")] for key in keys}


async def test_after_an_hour_without_it_a_siem_gets_all_and_the_others_never_waited(
    clock, tmp_path
):
    async with (
        splunk_server() as server,
        opened(tmp_path / "journal.db", *NAMES) as journal,
        fleet_of(journal) as fleet,
    ):
        record = configured("file", path=str(tmp_path / "record"))
        siem = configured("splunk", url=server.url, token=TOKEN)
        await fleet.configure({"record": record, "siem": siem})
        await server.down()
        sent: list[str] = []
        began = clock.time()
        for number in range(12):
            news = [about(f"event-{key}", number) for key in "abc"]
            await journal.append(news, clock.time())
            sent.extend(one.id for one in news)
            await until(lambda: len(ids(tmp_path / "record")) == len(sent))
            await asyncio.sleep(300 / SPEED)
        await until(lambda: clock.time() - began > 3600)
        assert fleet.status["siem"].state == "unavailable"
        assert fleet.status["siem"].attempts_failed >= 3
        assert len(await journal.run(lambda store: everything(store, "siem"))) == 36
        await server.up()
        assert await fleet.drain(10) == 0
        assert ordered(ids(tmp_path / "record")) == ordered(sent)
        assert ordered(server.ids) == ordered(sent)
        assert await journal.run(dead_letters) == []
