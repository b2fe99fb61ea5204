import asyncio
import logging

from support.deliveries import column, comes_to, left, record, said_of_sinks, soon
from support.journal_tools import about
from support.recording_sink import RecordingSink, at_work, dispatcher_for, fail
from support.until import until

from bridge.plugins import Unavailable


async def test_what_was_recorded_before_and_after_the_start_arrives_in_order(journal):
    recorder = RecordingSink()
    await record(journal, *(about("A", n) for n in range(3)))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: len(recorder.taken) == 3)
        await record(journal, *(about("A", n) for n in range(3, 6)))
        await until(lambda: len(recorder.taken) == 6)
        await comes_to(journal, [])
    assert recorder.taken == [f"A/{n}" for n in range(6)]


async def test_different_keys_go_out_in_one_batch(journal):
    recorder = RecordingSink()
    await record(journal, about("A", 1), about("B", 1), about("A", 2), about("C", 1))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: len(recorder.taken) == 4)
    assert recorder.batches == [["A/1", "B/1", "C/1"], ["A/2"]]


async def test_the_sink_gets_its_name_and_place(journal):
    recorder = RecordingSink()
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: recorder.entered)
    assert (recorder.places[0].sink, recorder.places[0].names) == ("sink", {"vm_name": "vm-0"})


async def test_a_key_that_is_stuck_delays_no_other(journal, hurry):
    def judge(event):
        return Unavailable("not this one") if event.key == "stuck" else None

    recorder = RecordingSink(judge)
    await record(journal, about("stuck", 1), about("stuck", 2), about("free", 1))
    async with at_work(dispatcher_for(journal, recorder)):
        for n in range(2, 12):
            await record(journal, about("free", n))
        await until(lambda: len(recorder.taken) == 11)
        await comes_to(journal, ["stuck/1", "stuck/2"])
        recorder.judge = lambda _: None
        await until(lambda: len(recorder.taken) == 13)
    assert [name for name in recorder.taken if "stuck" in name] == ["stuck/1", "stuck/2"]
    assert recorder.entered == 1


async def test_a_sink_that_hangs_delays_no_other_sink(journal):
    async def hang():
        await asyncio.Event().wait()

    dead, alive = RecordingSink(lambda _: hang()), RecordingSink()
    await record(journal, about("A"), about("B"))
    async with at_work(dispatcher_for(journal, dead), dispatcher_for(journal, alive, name="other")):
        await until(lambda: alive.taken == ["A/1", "B/1"] and dead.batches)
        await comes_to(journal, [], "other")
    assert await left(journal) == ["A/1", "B/1"]


async def test_an_attempt_takes_no_longer_than_the_notice_allows(journal, hurry):
    recorder = RecordingSink(pause=60)
    await record(journal, about("A", **soon(3.5)))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: worker.status.error, patience=5)
    assert str(worker.status.error).startswith("no answer within 1")


async def test_drained_waits_for_the_last_one(journal, hurry):
    recorder = RecordingSink(lambda _: Unavailable("not yet"))
    worker = dispatcher_for(journal, recorder)
    await worker.drained()
    await record(journal, about("A"), about("B"))
    async with at_work(worker):
        draining = asyncio.create_task(worker.drained())
        await until(lambda: len(recorder.batches) >= 3)
        assert not draining.done()
        recorder.judge = lambda _: None
        async with asyncio.timeout(5):
            await draining
    assert await left(journal) == []


async def test_between_batches_waits_for_the_batch_in_flight(journal):
    gate = asyncio.Event()
    recorder = RecordingSink(lambda _: gate.wait())
    recorder.answer = lambda results: [None for _ in results]
    await record(journal, about("A"))
    worker = dispatcher_for(journal, recorder)
    await worker.between_batches()
    async with at_work(worker):
        await until(lambda: recorder.batches)
        waiting = asyncio.create_task(worker.between_batches())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        gate.set()
        await waiting
        assert await left(journal) == []


async def test_a_send_canceled_midway_keeps_the_row_and_closes_the_sink(journal):
    recorder = RecordingSink(pause=60)
    await record(journal, about("A"))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: recorder.batches)
    assert await left(journal) == ["A/1"]
    assert await column(journal, "attempts", "A/1") is None
    assert recorder.left == 1


async def test_one_line_for_each_change_of_state(journal, hurry, caplog):
    caplog.set_level(logging.INFO, "bridge")
    recorder = RecordingSink(lambda _: fail(OSError("down")))
    await record(journal, about("A"))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: recorder.entered >= 5)
        assert worker.status.attempts_failed >= 4
        recorder.judge = lambda _: None
        await until(lambda: worker.status.delivered)
        await record(journal, about("A", 2))
        await until(lambda: worker.status.delivered == 2)
    assert said_of_sinks(caplog) == ["sink.connected", "sink.unavailable", "sink.connected"]
    assert worker.status.error is None


async def test_another_reason_is_not_another_state(journal, hurry, caplog):
    caplog.set_level(logging.INFO, "bridge")
    reasons = iter(f"reason {n}" for n in range(1000))
    recorder = RecordingSink(lambda _: Unavailable(next(reasons)))
    await record(journal, about("A"))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: len(recorder.batches) >= 4)
    assert said_of_sinks(caplog) == ["sink.connected", "sink.unavailable"]
    assert worker.status.error != "reason 0"


async def test_a_journal_in_memory_delivers_too(journal):
    recorder = RecordingSink()
    async with at_work(dispatcher_for(journal, recorder)):
        await journal.run(lambda store: store.connection.execute("PRAGMA query_only = ON"))
        await record(journal, about("A"))
        await until(lambda: recorder.taken == ["A/1"])
        assert await journal.repair()
        await record(journal, about("A", 2))
        await until(lambda: recorder.taken == ["A/1", "A/2"])
        await comes_to(journal, [])
