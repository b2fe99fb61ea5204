"""What a receiver asks for is kept, but never for longer than the notice allows."""

import asyncio
import time
from dataclasses import replace

from support.deliveries import comes_to, left, record, soon
from support.journal_tools import about
from support.recording_sink import RecordingSink, at_work, dispatcher_for, fail
from support.until import until

from bridge.plugins import Gone, Unavailable

LATER = Unavailable("it answered 429", retry_after=3600)
ENOUGH = 20.0
"""Seconds: more than any wait here, and far less than an hour."""


def outcome(key: str, n: int):
    """A CloudEvent that has no notice, about the same scheduled event."""
    return replace(about(key, n), type="azure.scheduledevents.approval.recorded.v1")


async def test_an_eviction_is_not_missed_because_the_receiver_asks_for_an_hour(journal):
    ways = ("returns", "raises", "does not let us in", "hangs up")
    await journal.register(ways, time.time())
    async with asyncio.TaskGroup() as side_by_side:
        asked = [asyncio.Event() for _ in ways]
        for how, event in zip(ways, asked, strict=True):
            side_by_side.create_task(asks_for_an_hour(journal, how, event))
        for event in asked:
            await event.wait()
        await record(journal, about("A", **soon(6)))


async def asks_for_an_hour(journal, how: str, asked: asyncio.Event) -> None:
    """Once, in one of the ways a sink can; *asked* is set when what comes next may be recorded."""
    asking = iter([LATER])

    def ask(*_):
        problem = next(asking, None)
        return fail(problem) if problem and how != "returns" else problem

    recorder = RecordingSink(
        judge=ask if how in {"returns", "raises"} else lambda _: None,
        entering=ask if how == "does not let us in" else lambda: None,
    )
    worker = dispatcher_for(journal, recorder, how)
    async with at_work(worker):
        await until(lambda: recorder.places)
        if how == "hangs up":
            await until(lambda: recorder.entered)
            recorder.places[-1].lost(LATER)
            await until(lambda: worker.status.state == "unavailable")
        asked.set()
        await until(lambda: recorder.taken == ["A/1"], patience=ENOUGH)


async def test_while_asked_to_stay_away_only_the_most_urgent_row_is_tried(journal):
    recorder = RecordingSink(lambda _: LATER)
    await record(journal, about("none", notBefore=None), about("far", **soon(900)))
    await record(journal, about("near", **soon(6)), about("past", **soon(-9)))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: len(recorder.batches) == 3, patience=ENOUGH)
    assert len(recorder.batches[0]) == 4
    assert recorder.batches[1:] == [["near/1"], ["near/1"]]


async def test_a_more_urgent_row_shortens_the_pause_and_the_others_keep_it(journal):
    asking = iter([LATER])
    recorder = RecordingSink(lambda _: next(asking, None))
    await record(journal, about("A", notBefore=None))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: recorder.batches)
        await record(journal, about("B", notBefore=None), about("C", **soon(6)))
        await until(lambda: recorder.taken == ["C/1"], patience=ENOUGH)
        await record(journal, about("D", notBefore=None))
        await asyncio.sleep(0.1)
        assert await left(journal) == ["A/1", "B/1", "D/1"]
    assert recorder.batches == [["A/1"], ["C/1"]]


async def test_an_outcome_does_not_hide_the_urgent_row_behind_it(journal):
    asking = iter([LATER])
    recorder = RecordingSink(lambda _: next(asking, None))
    await record(journal, outcome("A", 1))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: recorder.batches)
        await record(journal, about("A", 2, **soon(6)))
        await until(lambda: recorder.taken == ["A/1", "A/2"], patience=ENOUGH)


async def test_without_notice_the_receiver_gets_the_pause_that_it_asks_for(journal, hurry):
    asking = iter([Unavailable("later", retry_after=0.4)])
    recorder = RecordingSink(lambda _: next(asking, None))
    await record(journal, about("A", **soon(-5)))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: recorder.batches)
        began = time.monotonic()
        await record(journal, about("B", notBefore=None))
        await comes_to(journal, [])
    assert time.monotonic() - began >= 0.35
    assert recorder.batches == [["A/1"], ["A/1", "B/1"]]


async def test_what_the_sink_does_not_want_is_not_urgent(journal):
    recorder = RecordingSink(lambda _: LATER)
    await record(journal, about("A", notBefore=None))
    worker = dispatcher_for(journal, recorder, only={"event_types": ["Reboot"]})
    async with at_work(worker):
        await until(lambda: recorder.batches)
        await record(journal, about("B", eventType="Freeze", **soon(3)))
        await asyncio.sleep(1.5)
    assert recorder.batches == [["A/1"]]


async def test_a_receiver_that_is_gone_stops_the_sink_whatever_the_notice(journal):
    recorder = RecordingSink(lambda _: Gone("unsubscribed", retry_after=3600))
    await record(journal, about("A", **soon(5)))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: worker.status.state == "stopped")
        await asyncio.sleep(1.5)
    assert recorder.batches == [["A/1"]]


async def test_a_resumed_sink_does_not_wait_for_what_was_asked_before(journal):
    recorder = RecordingSink(lambda _: LATER)
    await record(journal, about("A", notBefore=None))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: recorder.batches)
        recorder.judge = lambda _: Gone("unsubscribed")
        await record(journal, about("B", **soon(4)))
        await until(lambda: worker.status.state == "stopped")
        recorder.judge = lambda _: None
        worker.status.resume(time.time())
        journal.announce()
        await comes_to(journal, [])


async def test_in_small_batches_the_most_urgent_goes_first(journal):
    recorder = RecordingSink(lambda event: None if event.key == "urgent" else fail(OSError("down")))
    await record(journal, *(about(f"K{n}", notBefore=None) for n in range(60)))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: worker._outage.limit == 1, patience=ENOUGH)
        tried = len(recorder.batches)
        await record(journal, about("urgent", **soon(20)))
        await until(lambda: recorder.taken, patience=ENOUGH)
    assert len(recorder.batches) - tried <= 2
