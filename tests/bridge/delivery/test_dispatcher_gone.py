"""A sink whose receiver wants nothing more: it stops with an error, loses nothing, and can resume."""

import asyncio
import logging
import time
from functools import partial

import pytest
from support.deliveries import column, comes_to, left, letters, record, said_of_sinks
from support.journal_tools import about
from support.recording_sink import RecordingSink, at_work, dispatcher_for, fail
from support.until import until

from bridge.plugins import Gone, Rejected, Unavailable


def enough(event):
    return Gone("410: unsubscribed") if event.key == "A" else None


async def test_the_rest_of_the_batch_counts_and_nothing_more_is_sent(journal, caplog):
    caplog.set_level(logging.INFO, "bridge")
    answers = {
        "A": Gone("410: unsubscribed"),
        "B": None,
        "C": Rejected("no"),
        "D": Unavailable("?"),
    }
    recorder = RecordingSink(lambda event: answers[event.key])
    await record(journal, *(about(key) for key in "ABCD"))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: recorder.left)
        await record(journal, about("B", 2))
        await asyncio.sleep(0.05)
        assert await left(journal) == ["A/1", "D/1", "B/2"]
    assert (worker.status.state, worker.status.error) == ("stopped", "410: unsubscribed")
    assert recorder.batches == [["A/1", "B/1", "C/1", "D/1"]]
    assert await column(journal, "error", "A/1") == "410: unsubscribed"
    assert [letter.event_id for letter in await letters(journal)] == ["C/1"]
    assert said_of_sinks(caplog) == ["sink.connected", "sink.dead_letter", "sink.stopped"]
    assert caplog.records[-1].levelname == "ERROR"


@pytest.mark.parametrize("waiting", [0, 2])
async def test_a_sink_that_is_gone_when_connecting_is_not_connected_again(journal, caplog, waiting):
    recorder = RecordingSink(entering=lambda: fail(Gone("no such address")))
    await record(journal, *(about(f"K{n}") for n in range(waiting)))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: worker.status.state == "stopped")
        await record(journal, about("B"))
        await asyncio.sleep(0.05)
    assert len(recorder.places) == 1
    assert len(await left(journal)) == waiting + 1
    assert said_of_sinks(caplog) == ["sink.stopped"]


async def test_a_batch_that_ends_with_it_as_an_exception_stops_the_sink_too(journal):
    recorder = RecordingSink(lambda _: fail(Gone("enough")))
    await record(journal, about("A"), about("B"))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: recorder.left)
    assert (worker.status.state, recorder.entered) == ("stopped", 1)
    assert await left(journal) == ["A/1", "B/1"]


async def test_a_resumed_sink_sends_what_waited_immediately_and_in_order(journal, caplog):
    caplog.set_level(logging.INFO, "bridge")
    recorder = RecordingSink(lambda _: Gone("410: unsubscribed", retry_after=600))
    await record(journal, about("A"))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: worker.status.state == "stopped")
        await record(journal, about("A", 2), about("B"))
        recorder.judge = lambda _: None
        assert worker.status.resume(time.time())
        journal.announce()
        await comes_to(journal, [])
        assert not worker.status.resume(time.time())
    assert [name for name in recorder.taken if "A" in name] == ["A/1", "A/2"]
    assert said_of_sinks(caplog) == ["sink.connected", "sink.stopped", "sink.connected"]


async def test_it_stops_again_when_nothing_has_changed(journal):
    recorder = RecordingSink(enough)
    await record(journal, about("A"))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        for times in (1, 2, 3):
            await until(partial(recorder.was_left, times))
            assert worker.status.resume(time.time())
            journal.announce()
    assert recorder.batches[:3] == [["A/1"]] * 3


async def test_what_waits_too_long_is_a_dead_letter_tried_before_or_not(journal):
    recorder = RecordingSink(enough)
    await record(journal, about("A", 1), about("A", 2))
    worker = dispatcher_for(journal, recorder, retry={"max_age": "150ms"})
    async with at_work(worker):
        await until(lambda: worker.status.state == "stopped")
        await record(journal, about("B"))
        assert await letters(journal) == []
        await comes_to(journal, [])
    found = {letter.event_id: letter for letter in await letters(journal)}
    assert set(found) == {"A/1", "A/2", "B/1"}
    assert {letter.attempts for letter in found.values()} == {0, 1}
    why = "not delivered within retry.max_age; the sink is stopped: 410: unsubscribed"
    assert {letter.reason for letter in found.values()} == {why}
    assert worker.status.rejected == 3


async def test_what_was_recorded_long_ago_has_its_time_from_the_stop_on(journal):
    recorder = RecordingSink(entering=lambda: fail(Gone("enough")))
    await journal.append([about("A", 1), about("A", 2)], time.time() - 7200)
    worker = dispatcher_for(journal, recorder, retry={"max_age": "1h"})
    async with at_work(worker):
        await until(lambda: worker.status.state == "stopped")
        await asyncio.sleep(0.05)
    assert await left(journal) == ["A/1", "A/2"]


async def test_what_a_stopped_sink_does_not_want_is_filtered_not_dead(journal):
    recorder = RecordingSink(entering=lambda: fail(Gone("enough")))
    worker = dispatcher_for(
        journal, recorder, only={"event_types": ["Freeze"]}, retry={"max_age": "0s"}
    )
    async with at_work(worker):
        await until(lambda: worker.status.state == "stopped")
        await record(journal, about("A"), about("B", eventType="Freeze"))
        await comes_to(journal, [])
    assert await column(journal, "how", "A/1") == "filtered"
    assert await column(journal, "how", "B/1") == "dead"


async def test_a_stopped_sink_delays_neither_the_drain_nor_other_sinks(journal):
    gone, alive = RecordingSink(enough), RecordingSink()
    stopping = dispatcher_for(journal, gone)
    async with at_work(stopping, dispatcher_for(journal, alive, name="other")):
        await record(journal, about("A"))
        async with asyncio.timeout(10):
            await stopping.drained()
        await comes_to(journal, [], "other")
    assert await left(journal) == ["A/1"]


async def test_a_restarted_dispatcher_remembers_that_it_stopped(journal):
    recorder = RecordingSink(enough)
    await record(journal, about("A"))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: recorder.left)
    async with at_work(worker):
        await asyncio.sleep(0.05)
    assert recorder.entered == 1
