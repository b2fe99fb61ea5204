"""What a sink returns when it does not accept a CloudEvent, and the consequences."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest
from support.deliveries import column, comes_to, left, letters, record, said_of_sinks
from support.journal_tools import about
from support.recording_sink import RecordingSink, at_work, dispatcher_for, fail
from support.until import until

from bridge.journal.cursors import replay_letter, replay_sink
from bridge.plugins import Rejected, Unavailable


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda _: [], "returned 0 results for 1 CloudEvents"),
        (lambda results: [*results, None], "returned 2 results for 1 CloudEvents"),
        (lambda _: None, "returned None results for 1 CloudEvents"),
        (lambda _: [True], "returned an invalid result: True"),
        (lambda _: [OSError("x")], "returned an invalid result: OSError('x')"),
    ],
    ids=["too few", "too many", "none", "odd", "foreign"],
)
async def test_an_invalid_answer_proves_nothing(journal, hurry, answer, error):
    recorder = RecordingSink(answer=answer)
    await record(journal, about("A"))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: recorder.entered >= 2)
        assert await left(journal) == ["A/1"]
        assert await column(journal, "error", "A/1") == error
        assert (worker.status.state, worker.status.error) == ("unavailable", error)
        recorder.answer = lambda results: results
        await comes_to(journal, [])
    assert recorder.left == recorder.entered


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Unavailable("gone home"), "gone home"),
        (Rejected("as an exception it is not about one"), "as an exception it is not about one"),
        (ValueError(), "ValueError()"),
        (asyncio.CancelledError(), "CancelledError()"),
        (ExceptionGroup("two", [OSError("a"), OSError("b")]), "two (2 sub-exceptions)"),
    ],
    ids=["unavailable", "rejected", "empty", "cancelled", "group"],
)
async def test_after_an_exception_the_sink_reconnects_and_tries_again(journal, hurry, error, said):
    recorder = RecordingSink(lambda _: fail(error))
    await record(journal, about("A"))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: recorder.entered >= 3)
        assert recorder.left >= 2
        assert await left(journal) == ["A/1"]
        assert await column(journal, "error", "A/1") == said
        recorder.judge = lambda _: None
        await until(lambda: recorder.taken)
    assert await letters(journal) == []


async def test_a_send_that_is_not_even_a_coroutine_means_later(journal, hurry):
    recorder: Any = RecordingSink()
    recorder.send = lambda _: 1 / 0
    await record(journal, about("A"))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: recorder.entered >= 2)
    assert worker.status.error == "division by zero"


async def test_a_missing_answer_means_retry(journal, hurry):
    recorder = RecordingSink(pause=60)
    await record(journal, about("A"))
    worker = dispatcher_for(journal, recorder, retry={"timeout": "20ms"})
    async with at_work(worker):
        await until(lambda: recorder.entered >= 2)
        recorder.pause = 0
        await until(lambda: recorder.taken)
    assert await column(journal, "error", "A/1") == "no answer within 0.02 s"
    assert (await column(journal, "attempts", "A/1")) >= 2


async def test_what_is_refused_is_a_dead_letter_and_the_next_of_its_key_goes_on(
    journal, hurry, caplog
):
    refused = []

    def judge(event):
        if event.id != "A/1":
            return None
        refused.append(event.id)
        return Rejected("too pink") if len(refused) == 3 else Unavailable("think")

    recorder = RecordingSink(judge)
    await record(journal, about("A", 1), about("A", 2), about("B", 1))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: len(recorder.taken) == 2)
    assert recorder.taken == ["B/1", "A/2"]
    (letter,) = await letters(journal)
    assert (letter.event_id, letter.reason, letter.attempts) == ("A/1", "too pink", 3)
    assert letter.first <= letter.last
    assert worker.status.rejected == 1
    assert said_of_sinks(caplog).count("sink.dead_letter") == 1
    (line,) = [one for one in caplog.records if one.msg == "sink.dead_letter"]
    assert (line.dead_letter, line.reason) == (letter.id, "too pink")


async def test_at_debug_level_each_attempt_has_a_line_with_its_result(journal, hurry, caplog):
    caplog.set_level("DEBUG", "bridge")
    tries = iter([Unavailable("busy"), None])
    await record(journal, about("A", 1))
    recorder = RecordingSink(lambda _: next(tries))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: recorder.taken)
    lines = [one for one in caplog.records if one.msg == "sink.attempted"]
    assert [(one.levelname, one.id, one.result, one.error) for one in lines[:2]] == [
        ("DEBUG", "A/1", "failed", "busy"),
        ("DEBUG", "A/1", "delivered", None),
    ]


async def test_a_refusal_without_a_message_shows_its_class_name(journal):
    recorder = RecordingSink(lambda _: Rejected())
    await record(journal, about("A"))
    async with at_work(dispatcher_for(journal, recorder)):
        while not (found := await letters(journal)):
            await asyncio.sleep(0.002)
    assert found[0].reason == "Rejected"


async def test_a_replayed_dead_letter_arrives_late(journal):
    recorder = RecordingSink(lambda event: Rejected("no") if event.id == "A/1" else None)
    await record(journal, about("A", 1), about("A", 2))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: recorder.taken == ["A/2"])
        recorder.judge = lambda _: None
        (letter,) = await letters(journal)
        await journal.run(lambda store: replay_letter(store.connection, letter))
        journal.announce()
        await until(lambda: recorder.taken == ["A/2", "A/1"])
        await comes_to(journal, [])
        await journal.run(lambda store: replay_sink(store.connection, "sink"))
        journal.announce()
        await until(lambda: recorder.taken == ["A/2", "A/1", "A/1", "A/2"])


async def test_one_row_that_breaks_every_batch_cannot_stop_the_others(journal, hurry):
    def judge(event):
        if event.key == "K7":
            raise RuntimeError("poison")

    recorder = RecordingSink(judge)
    await record(journal, *(about(f"K{n}") for n in range(40)))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: len(set(recorder.taken)) == 39)
        await record(journal, *(about(f"K{n}", 2) for n in range(40)))
        await comes_to(journal, ["K7/1", "K7/2"])


async def test_a_row_that_the_disk_damaged_stops_no_other(journal, hurry):
    recorder = RecordingSink()
    damaged = replace(about("A"), body=b'{"data": {"status": "Scheduled", "notBefore": "\xff"')
    await record(journal, damaged, about("B"))
    async with at_work(dispatcher_for(journal, recorder, only={"event_types": ["*"]})):
        await until(lambda: set(recorder.taken) == {"A/1", "B/1"})


async def test_two_rows_are_split_at_the_first_failure(journal, hurry):
    recorder = RecordingSink(lambda event: fail(RuntimeError()) if event.key == "A" else None)
    await record(journal, about("A"), about("B"))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: recorder.taken)
    assert recorder.batches[0] == ["A/1", "B/1"]
    assert all(len(batch) == 1 for batch in recorder.batches[1:])


async def test_batches_grow_again_after_successes(journal, hurry):
    recorder = RecordingSink(lambda _: fail(RuntimeError()))
    await record(journal, *(about(f"K{n}") for n in range(30)))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: len(recorder.batches[-1:] or [()]) == 1 and recorder.entered > 6)
        recorder.judge = lambda _: None
        await until(lambda: len(recorder.taken) == 30)
        await record(journal, *(about(f"K{n}", 2) for n in range(30)))
        await until(lambda: len(recorder.taken) == 60)
    assert max(len(batch) for batch in recorder.batches[-3:]) > 5


async def test_a_sink_that_fails_at_every_batch_reconnects_with_pauses(journal):
    recorder = RecordingSink(lambda _: fail(RuntimeError()))
    await record(journal, *(about(f"K{n}") for n in range(200)))
    worker = dispatcher_for(journal, recorder)
    worker._outage.limit = 1
    async with at_work(worker):
        await asyncio.sleep(0.5)
    assert 1 <= recorder.entered < 40


async def test_what_is_too_old_is_a_dead_letter_but_only_after_an_attempt(journal, hurry):
    answers = iter([Unavailable("busy")] * 2)
    recorder = RecordingSink(lambda _: next(answers, None))
    long_ago = time.time() - 10 * 86400
    await journal.append([about("A")], long_ago)
    async with at_work(dispatcher_for(journal, recorder, retry={"max_age": "1h"})):
        await until(lambda: recorder.taken == ["A/1"])
    assert await letters(journal) == []


async def test_what_was_tried_for_too_long_is_a_dead_letter(journal, hurry):
    recorder = RecordingSink(lambda event: Unavailable("busy") if event.id == "A/1" else None)
    await record(journal, about("A", 1), about("A", 2))
    async with at_work(dispatcher_for(journal, recorder, retry={"max_age": "50ms"})):
        await until(lambda: recorder.taken == ["A/2"])
    (letter,) = await letters(journal)
    assert letter.reason == "not delivered within retry.max_age; last: busy"
    assert letter.attempts >= 2
    assert letter.last - letter.first >= 0.05


async def test_what_waits_too_long_for_a_sink_that_is_down_is_a_dead_letter_too(journal, hurry):
    recorder = RecordingSink(entering=lambda: fail(Unavailable("nobody at home")))
    await record(journal, about("A", 1))
    worker = dispatcher_for(journal, recorder, retry={"max_age": "50ms"})
    async with at_work(worker):
        while not (found := await letters(journal)):
            await asyncio.sleep(0.005)
    assert found[0].reason == "not delivered within retry.max_age; last: nobody at home"
    assert worker.status.rejected == 1
