"""What a sink gets next, and what is settled without being sent."""

import time
from dataclasses import replace

import pytest
from support.deliveries import column, comes_to, left, record, soon
from support.journal_tools import about
from support.recording_sink import RecordingSink, at_work, dispatcher_for
from support.until import until

from bridge.delivery.outbox import Outgoing
from bridge.journal import views
from bridge.plugins import (
    Delivered,
    Format,
    FormatPlugin,
    FormatSettings,
    SinkSettings,
    Unavailable,
)
from bridge.runtime.status import SinkStatus


@pytest.fixture
def pager(monkeypatch):
    """A format that supports only reboots; it counts how often it was made."""
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


async def test_what_the_format_does_not_support_is_filtered(journal, pager):
    mine = outgoing(journal, format="pager")
    await record(journal, about("A"), about("B", eventType="Freeze"), about("C"))
    assert await following(mine) == ["A/1", "C/1"]
    assert await left(journal) == ["A/1", "C/1"]
    assert await column(journal, "how", "B/1") == "filtered"
    assert mine.status.filtered == 1
    assert await following(mine) == ["A/1", "C/1"]
    assert len(pager) == 1


async def test_the_sink_reports_a_format_that_fails(journal, pager):
    event = about("A")
    odd = replace(event, body=event.body.replace(b'"eventType"', b'"another"'))
    mine = outgoing(journal, format="pager")
    await record(journal, odd)
    assert await following(mine) == ["A/1"]


async def test_without_a_format_nothing_is_asked(journal, pager):
    await record(journal, about("A", eventType="Freeze"))
    assert await following(outgoing(journal)) == ["A/1"]
    assert pager == []


async def test_filters_settle_without_sending(journal):
    recorder = RecordingSink()
    await record(journal, about("A", 1), about("B", 1, eventType="Freeze"), about("A", 2))
    worker = dispatcher_for(journal, recorder, only={"event_types": ["Fr*"]})
    async with at_work(worker):
        await worker.drained()
    assert recorder.taken == ["B/1"]
    assert [await column(journal, "how", name) for name in ("A/1", "A/2")] == ["filtered"] * 2
    assert await column(journal, "attempts", "A/1") == 0
    assert (worker.status.filtered, worker.status.delivered) == (2, 1)


async def test_outdated_states_are_skipped_if_configured(journal):
    recorder = RecordingSink()
    await record(journal, about("A", 1), about("A", 2), about("B", 1), about("A", 3))
    worker = dispatcher_for(journal, recorder, stale="skip")
    async with at_work(worker):
        await worker.drained()
    assert recorder.taken == ["B/1", "A/3"]
    assert await column(journal, "how", "A/2") == "overtaken"


async def test_latency_is_from_the_record_to_the_answer(journal):
    recorder = RecordingSink()
    await journal.append([about("A")], time.time() - 7)
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: worker.status.delivered)
    assert sum(worker.status.latency.counts) == 1
    assert 7 <= worker.status.latency.total < 12


async def test_a_note_is_kept_with_the_delivery_and_shown(journal):
    recorder = RecordingSink(lambda event: Delivered("ticket 17") if event.key == "A" else None)
    await record(journal, about("A"), about("B"))
    async with at_work(dispatcher_for(journal, recorder)):
        await comes_to(journal, [])
    assert await column(journal, "note", "A/1") == "ticket 17"
    assert await column(journal, "note", "B/1") is None
    [shown] = await journal.run(lambda store: views.history(store, "A"))
    noted = [(one["outcome"], one["note"]) for one in shown["deliveries"] if one["note"]]
    assert noted == [("delivered", "ticket 17")]


async def test_a_note_about_what_first_failed_is_kept_too(journal):
    answers = iter([Unavailable("busy", retry_after=0.001)])
    recorder = RecordingSink(lambda _: next(answers, Delivered("at last")))
    await record(journal, about("A"))
    async with at_work(dispatcher_for(journal, recorder)):
        await comes_to(journal, [])
    assert await column(journal, "note", "A/1") == "at last"
    assert await column(journal, "error", "A/1") == "busy"


async def test_a_note_in_memory_is_written_to_the_file_with_its_delivery(journal):
    recorder = RecordingSink(lambda _: Unavailable("busy", retry_after=0.001))
    await record(journal, about("A"))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: len(recorder.batches) > 1)
        await journal.run(lambda store: store.connection.execute("PRAGMA query_only = ON"))
        recorder.judge = lambda _: Delivered("said in the dark")
        await comes_to(journal, [])
        assert journal.trouble
        assert await journal.repair()
    assert await column(journal, "note", "A/1") == "said in the dark"


async def test_the_most_urgent_of_what_waits_has_the_least_notice_and_is_wanted(journal):
    only = {"event_types": ["Reboot"]}
    settings = SinkSettings.model_validate({"type": "fake", "only": only})
    outgoing = Outgoing("sink", settings, journal, SinkStatus("fake", required=True))
    assert await outgoing.most_urgent() is None
    await record(journal, about("none", notBefore=None), about("past", **soon(-5)))
    assert await outgoing.most_urgent() is None
    await record(journal, about("near", **soon(60)), about("far", **soon(600)))
    await record(journal, about("other", eventType="Freeze", **soon(5)))
    found = await outgoing.most_urgent()
    assert found is not None
    assert found.key == "near"
