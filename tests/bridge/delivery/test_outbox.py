"""What a sink gets next, and what is settled without being sent."""

from dataclasses import replace

import pytest
from support.deliveries import column, left, record
from support.journal_tools import about, opened

from bridge.delivery.outbox import Outgoing
from bridge.plugins import Format, FormatPlugin, FormatSettings, SinkSettings
from bridge.runtime.status import SinkStatus


@pytest.fixture
async def journal(tmp_path):
    async with opened(tmp_path / "journal.db", "sink") as made:
        yield made


@pytest.fixture
def pager(monkeypatch):
    """A format with words for reboots only; how often it was made is counted."""
    made = []

    def reboots(event):
        return event.data["eventType"] == "Reboot"

    def open_(_):
        made.append(1)
        return Format(lambda event: event.body, "text/plain", reboots)

    plugin = FormatPlugin(FormatSettings, open_)
    for where in ("formats", "sinks"):
        monkeypatch.setattr(f"bridge.plugins.{where}.find_format", lambda _: plugin)
    return made


def outgoing(journal, **settings) -> Outgoing:
    asked = SinkSettings.model_validate({"type": "fake", **settings})
    return Outgoing("sink", asked, journal, SinkStatus("fake", required=True))


async def following(mine: Outgoing) -> list[str]:
    return [row.event.id for row in await mine.next(500, frozenset())]


async def test_what_the_format_has_no_words_for_is_filtered(journal, pager):
    mine = outgoing(journal, format="pager")
    await record(journal, about("A"), about("B", eventType="Freeze"), about("C"))
    assert await following(mine) == ["A/1", "C/1"]
    assert await left(journal) == ["A/1", "C/1"]
    assert await column(journal, "how", "B/1") == "filtered"
    assert mine.status.filtered == 1
    assert await following(mine) == ["A/1", "C/1"]
    assert len(pager) == 1


async def test_a_format_that_cannot_answer_is_for_the_sink_to_complain_about(journal, pager):
    event = about("A")
    odd = replace(event, body=event.body.replace(b'"eventType"', b'"another"'))
    mine = outgoing(journal, format="pager")
    await record(journal, odd)
    assert await following(mine) == ["A/1"]


async def test_without_a_format_nothing_is_asked(journal, pager):
    await record(journal, about("A", eventType="Freeze"))
    assert await following(outgoing(journal)) == ["A/1"]
    assert pager == []
