"""Connecting, closing and reconnecting a sink."""

import asyncio
import logging
import time

import pytest
from support.deliveries import column, comes_to, left, record, said_of_sinks, soon
from support.journal_tools import about
from support.recording_sink import RecordingSink, at_work, dispatcher_for, fail
from support.until import until

from bridge.plugins import Place, Unavailable


async def test_what_a_sink_does_not_want_never_waits_for_it(journal, hurry):
    recorder = RecordingSink(entering=lambda: fail(Unavailable("nobody at home")))
    await record(journal, about("A", 1), about("B", 1, eventType="Freeze"))
    only = {"event_types": ["Freeze"]}
    worker = dispatcher_for(journal, recorder, only=only, retry={"max_age": "1h"})
    async with at_work(worker):
        await until(lambda: worker._entries_failed >= 2)
        assert await left(journal) == ["B/1"]
        assert await column(journal, "how", "A/1") == "filtered"
    assert worker.status.filtered == 1


async def test_a_sink_that_is_down_is_retried_and_then_everything_arrives(journal, hurry, caplog):
    closed = iter([OSError("refused"), Unavailable("busy"), TimeoutError(), None])

    def enter():
        if (error := next(closed)) is not None:
            raise error

    caplog.set_level(logging.INFO, "bridge")
    recorder = RecordingSink(entering=enter)
    await record(journal, about("A"), about("B"))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await comes_to(journal, [])
    assert recorder.batches == [["A/1", "B/1"]]
    assert await column(journal, "attempts", "A/1") == 4
    assert said_of_sinks(caplog) == ["sink.unavailable", "sink.connected"]


async def test_a_plugin_that_fails_before_it_connects_counts_as_unavailable(journal, hurry):
    recorder = RecordingSink()
    worker = dispatcher_for(journal, recorder)
    worker.place = lambda: fail(Unavailable("{vm_id} is not known yet"))
    await record(journal, about("A"))
    async with at_work(worker):
        await until(lambda: worker._entries_failed > 1)
        assert worker.status.error == "{vm_id} is not known yet"
        assert await column(journal, "attempts", "A/1") >= 1


async def test_a_connection_attempt_that_hangs_is_abandoned(journal, hurry):
    async def hang():
        await asyncio.Event().wait()

    recorder = RecordingSink(entering=hang)
    worker = dispatcher_for(journal, recorder, retry={"timeout": "20ms"})
    async with at_work(worker):
        await until(lambda: worker._entries_failed >= 2)
    assert worker.status.error == "no answer within 0.02 s"


@pytest.mark.parametrize("how", ["raises", "hangs"])
async def test_a_sink_that_does_not_close_is_still_reconnected(journal, hurry, caplog, how):
    async def leave():
        await (asyncio.Event().wait() if how == "hangs" else asyncio.sleep(0))
        raise OSError("will not close")

    recorder = RecordingSink(lambda _: fail(RuntimeError()), leaving=leave)
    await record(journal, about("A"))
    async with at_work(dispatcher_for(journal, recorder, retry={"timeout": "30ms"})):
        await until(lambda: recorder.entered >= 2)
        recorder.judge = lambda _: None
        await until(lambda: recorder.taken)
    assert "sink.close_failed" in said_of_sinks(caplog)


async def test_the_requested_wait_is_kept_while_the_sink_is_down(journal, hurry):
    closed = iter([None, Unavailable("closed"), Unavailable("closed")])

    def enter():
        if (error := next(closed, None)) is not None:
            raise error

    recorder = RecordingSink(lambda _: Unavailable("later", retry_after=60), entering=enter)
    await record(journal, about("A"))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: recorder.batches == [["A/1"]])
        recorder.judge = lambda _: fail(OSError("broken"))
        await record(journal, about("B", **soon(5)))
        await until(lambda: len(recorder.batches) == 2)
        recorder.judge = lambda _: None
        await comes_to(journal, ["A/1"])
    assert sum("A/1" in batch for batch in recorder.batches) == 1


async def test_a_sink_that_cannot_connect_may_ask_for_a_wait(journal, hurry):
    closed = iter([Unavailable("later", retry_after=0.3)])

    def enter():
        if (error := next(closed, None)) is not None:
            raise error

    recorder = RecordingSink(entering=enter)
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: worker.status.state == "unavailable")
        began = time.monotonic()
        await record(journal, about("A", **soon(20)))
        await until(lambda: recorder.taken)
    assert time.monotonic() - began >= 0.25


async def test_a_new_event_with_short_notice_shortens_the_wait_for_a_sink_that_is_down(
    journal, monkeypatch
):
    monkeypatch.setattr("bridge.delivery.backoff.backoff", lambda *_, most, **__: most)
    closed = iter([Unavailable("busy")])

    def enter():
        if (error := next(closed, None)) is not None:
            raise error

    recorder = RecordingSink(entering=enter)
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: worker.status.state == "unavailable")
        await record(journal, about("A", **soon(5)))
        await until(lambda: recorder.taken, patience=5)


async def test_a_sink_reconnects_after_a_silent_disconnect_before_anything_is_sent(journal, hurry):
    recorder = RecordingSink()
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: recorder.entered == 1)
        recorder.places[-1].lost(Unavailable("the broker is gone"))
        await until(lambda: recorder.entered == 2)
        await until(lambda: worker.status.state == "connected")
        assert recorder.left == 1
    assert (recorder.batches, worker.status.attempts_failed) == ([], 0)


async def test_a_sink_reconnects_once_the_names_for_its_topics_are_known(journal):
    recorder, here = RecordingSink(), [Place({"vm_name": None})]
    worker = dispatcher_for(journal, recorder)
    worker.place = lambda: here[-1]
    async with at_work(worker):
        await record(journal, about("A", 1))
        await until(lambda: recorder.taken == ["A/1"])
        here.append(Place({"vm_name": "vm-0"}))
        journal.announce()
        await until(lambda: recorder.entered == 2)
        await record(journal, about("A", 2))
        await until(lambda: recorder.taken == ["A/1", "A/2"])
    assert [place.names["vm_name"] for place in recorder.places] == [None, "vm-0"]
    assert (recorder.entered, worker.status.attempts_failed) == (2, 0)


async def test_an_old_session_cannot_end_the_next_one(journal, hurry):
    recorder = RecordingSink()
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: recorder.entered == 1)
        recorder.places[0].lost(Unavailable("gone"))
        await until(lambda: recorder.entered == 2)
        recorder.places[0].lost(Unavailable("gone, once more"))
        await record(journal, about("A", 1))
        await until(lambda: recorder.taken == ["A/1"])
    assert recorder.entered == 2


@pytest.mark.parametrize("how", ["lost", "broken"])
async def test_a_sink_that_asks_for_a_wait_is_not_connected_earlier(journal, hurry, how):
    asking = Unavailable("a twin threw us out", retry_after=0.4)
    recorder = RecordingSink(judge=lambda _: fail(asking))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: recorder.entered == 1)
        began = time.monotonic()
        if how == "lost":
            recorder.places[-1].lost(asking)
        else:
            await record(journal, about("A", 1))
        await until(lambda: recorder.entered >= 2)
    assert time.monotonic() - began >= 0.35
