import asyncio
import logging
import time

from support.deliveries import column, comes_to, left, record, said_of_sinks, soon
from support.far_side import FarSide, at_work, dispatcher_for, fail
from support.journal_tools import about
from support.until import until

from bridge.plugins import Unavailable


async def test_what_was_recorded_before_and_after_the_start_arrives_in_order(journal):
    far_side = FarSide()
    await record(journal, *(about("A", n) for n in range(3)))
    async with at_work(dispatcher_for(journal, far_side)):
        await until(lambda: len(far_side.taken) == 3)
        await record(journal, *(about("A", n) for n in range(3, 6)))
        await until(lambda: len(far_side.taken) == 6)
        await comes_to(journal, [])
    assert far_side.taken == [f"A/{n}" for n in range(6)]


async def test_different_keys_go_out_in_one_batch(journal):
    far_side = FarSide()
    await record(journal, about("A", 1), about("B", 1), about("A", 2), about("C", 1))
    async with at_work(dispatcher_for(journal, far_side)):
        await until(lambda: len(far_side.taken) == 4)
    assert far_side.batches == [["A/1", "B/1", "C/1"], ["A/2"]]


async def test_the_sink_is_told_its_name_and_place(journal):
    far_side = FarSide()
    async with at_work(dispatcher_for(journal, far_side)):
        await until(lambda: far_side.entered)
    assert (far_side.places[0].sink, far_side.places[0].names) == ("sink", {"vm_name": "vm-0"})


async def test_a_key_that_is_stuck_delays_no_other(journal, hurry):
    def judge(event):
        return Unavailable("not this one") if event.key == "stuck" else None

    far_side = FarSide(judge)
    await record(journal, about("stuck", 1), about("stuck", 2), about("free", 1))
    async with at_work(dispatcher_for(journal, far_side)):
        for n in range(2, 12):
            await record(journal, about("free", n))
        await until(lambda: len(far_side.taken) == 11)
        await comes_to(journal, ["stuck/1", "stuck/2"])
        far_side.judge = lambda _: None
        await until(lambda: len(far_side.taken) == 13)
    assert [name for name in far_side.taken if "stuck" in name] == ["stuck/1", "stuck/2"]
    assert far_side.entered == 1


async def test_a_sink_that_hangs_delays_no_other_sink(journal):
    async def hang():
        await asyncio.Event().wait()

    dead, alive = FarSide(lambda _: hang()), FarSide()
    await record(journal, about("A"), about("B"))
    async with at_work(dispatcher_for(journal, dead), dispatcher_for(journal, alive, name="other")):
        await until(lambda: alive.taken == ["A/1", "B/1"] and dead.batches)
        await comes_to(journal, [], "other")
    assert await left(journal) == ["A/1", "B/1"]


async def test_a_sink_can_ask_for_a_wait(journal, hurry):
    answers = iter([Unavailable("later", retry_after=0.3)])
    far_side = FarSide(lambda event: next(answers, None) if event.key == "A" else None)
    await record(journal, about("A"))
    async with at_work(dispatcher_for(journal, far_side)):
        await until(lambda: far_side.batches)
        began = time.monotonic()
        await record(journal, about("B"))
        await until(lambda: far_side.taken == ["B/1"])
        await until(lambda: far_side.taken == ["B/1", "A/1"])
    assert time.monotonic() - began >= 0.25


async def test_an_attempt_takes_no_longer_than_the_notice_allows(journal, hurry):
    far_side = FarSide(pause=60)
    await record(journal, about("A", **soon(3.5)))
    worker = dispatcher_for(journal, far_side)
    async with at_work(worker):
        await until(lambda: worker.status.error, patience=5)
    assert str(worker.status.error).startswith("no answer within 1")


async def test_drained_waits_for_the_last_one(journal, hurry):
    far_side = FarSide(lambda _: Unavailable("not yet"))
    worker = dispatcher_for(journal, far_side)
    await worker.drained()
    await record(journal, about("A"), about("B"))
    async with at_work(worker):
        draining = asyncio.create_task(worker.drained())
        await until(lambda: len(far_side.batches) >= 3)
        assert not draining.done()
        far_side.judge = lambda _: None
        async with asyncio.timeout(5):
            await draining
    assert await left(journal) == []


async def test_between_batches_waits_for_the_batch_in_flight(journal):
    gate = asyncio.Event()
    far_side = FarSide(lambda _: gate.wait())
    far_side.answer = lambda results: [None for _ in results]
    await record(journal, about("A"))
    worker = dispatcher_for(journal, far_side)
    await worker.between_batches()
    async with at_work(worker):
        await until(lambda: far_side.batches)
        waiting = asyncio.create_task(worker.between_batches())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        gate.set()
        await waiting
        assert await left(journal) == []


async def test_a_send_cancelled_midway_keeps_the_row_and_closes_the_sink(journal):
    far_side = FarSide(pause=60)
    await record(journal, about("A"))
    async with at_work(dispatcher_for(journal, far_side)):
        await until(lambda: far_side.batches)
    assert await left(journal) == ["A/1"]
    assert await column(journal, "attempts", "A/1") is None
    assert far_side.left == 1


async def test_one_line_for_each_change_of_state(journal, hurry, caplog):
    caplog.set_level(logging.INFO, "bridge")
    far_side = FarSide(lambda _: fail(OSError("down")))
    await record(journal, about("A"))
    worker = dispatcher_for(journal, far_side)
    async with at_work(worker):
        await until(lambda: far_side.entered >= 5)
        assert worker.status.attempts_failed >= 4
        far_side.judge = lambda _: None
        await until(lambda: worker.status.delivered)
        await record(journal, about("A", 2))
        await until(lambda: worker.status.delivered == 2)
    assert said_of_sinks(caplog) == ["sink.connected", "sink.unavailable", "sink.connected"]
    assert worker.status.error is None


async def test_another_reason_is_not_another_state(journal, hurry, caplog):
    caplog.set_level(logging.INFO, "bridge")
    reasons = iter(f"reason {n}" for n in range(1000))
    far_side = FarSide(lambda _: Unavailable(next(reasons)))
    await record(journal, about("A"))
    worker = dispatcher_for(journal, far_side)
    async with at_work(worker):
        await until(lambda: len(far_side.batches) >= 4)
    assert said_of_sinks(caplog) == ["sink.connected", "sink.unavailable"]
    assert worker.status.error != "reason 0"


async def test_a_journal_in_memory_delivers_too(journal):
    far_side = FarSide()
    async with at_work(dispatcher_for(journal, far_side)):
        await journal.run(lambda store: store.connection.execute("PRAGMA query_only = ON"))
        await record(journal, about("A"))
        await until(lambda: far_side.taken == ["A/1"])
        assert await journal.repair()
        await record(journal, about("A", 2))
        await until(lambda: far_side.taken == ["A/1", "A/2"])
        await comes_to(journal, [])
