import asyncio
import logging
import time
from datetime import UTC, datetime, timedelta

import pytest
from support.deliveries import column, comes_to, left, letters, record, said_of_sinks
from support.far_side import FarSide, at_work, dispatcher_for
from support.journal_tools import about, opened
from support.until import until

from bridge.common import supervise
from bridge.journal.cursors import replay_letter, replay_sink
from bridge.plugins import Place, Rejected, Unavailable


@pytest.fixture
async def journal(tmp_path):
    async with opened(tmp_path / "journal.db", "sink", "other") as made:
        yield made


@pytest.fixture
def hurry(monkeypatch):
    """Waits between attempts are a hundred times shorter."""
    real = supervise.backoff

    def short(attempt: int, **keys) -> float:
        return real(attempt, **keys) / 100

    monkeypatch.setattr("bridge.delivery.dispatcher.backoff", short)
    monkeypatch.setattr("bridge.delivery.backoff.backoff", short)


def soon(seconds: float) -> dict[str, str]:
    return {"notBefore": (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()}


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


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda _: [], "gave 0 results for 1 CloudEvents"),
        (lambda results: [*results, None], "gave 2 results for 1 CloudEvents"),
        (lambda _: None, "gave None results for 1 CloudEvents"),
        (lambda _: [True], "gave a result that is none: True"),
        (lambda _: [OSError("x")], "gave a result that is none: OSError('x')"),
    ],
    ids=["too few", "too many", "none", "odd", "foreign"],
)
async def test_an_answer_that_is_none_proves_nothing(journal, hurry, answer, error):
    far_side = FarSide(answer=answer)
    await record(journal, about("A"))
    worker = dispatcher_for(journal, far_side)
    async with at_work(worker):
        await until(lambda: far_side.entered == 2)
        assert await left(journal) == ["A/1"]
        assert await column(journal, "error", "A/1") == error
        assert (worker.status.state, worker.status.error) == ("unavailable", error)
        far_side.answer = lambda results: results
        await comes_to(journal, [])
    assert far_side.left == far_side.entered


def fail(error: BaseException):
    raise error


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
async def test_an_exception_means_later_and_the_sink_is_entered_anew(journal, hurry, error, said):
    far_side = FarSide(lambda _: fail(error))
    await record(journal, about("A"))
    worker = dispatcher_for(journal, far_side)
    async with at_work(worker):
        await until(lambda: far_side.entered == 3)
        assert far_side.left >= 2
        assert await left(journal) == ["A/1"]
        assert await column(journal, "error", "A/1") == said
        far_side.judge = lambda _: None
        await until(lambda: far_side.taken)
    assert await letters(journal) == []


async def test_a_send_that_is_not_even_a_coroutine_means_later(journal, hurry):
    far_side = FarSide()
    far_side.send = lambda _: 1 / 0
    await record(journal, about("A"))
    worker = dispatcher_for(journal, far_side)
    async with at_work(worker):
        await until(lambda: far_side.entered == 2)
    assert worker.status.error == "division by zero"


async def test_silence_means_later(journal, hurry):
    far_side = FarSide(pause=60)
    await record(journal, about("A"))
    worker = dispatcher_for(journal, far_side, retry={"timeout": "20ms"})
    async with at_work(worker):
        await until(lambda: far_side.entered == 2)
        far_side.pause = 0
        await until(lambda: far_side.taken)
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

    far_side = FarSide(judge)
    await record(journal, about("A", 1), about("A", 2), about("B", 1))
    worker = dispatcher_for(journal, far_side)
    async with at_work(worker):
        await until(lambda: len(far_side.taken) == 2)
    assert far_side.taken == ["B/1", "A/2"]
    (letter,) = await letters(journal)
    assert (letter.event_id, letter.reason, letter.attempts) == ("A/1", "too pink", 3)
    assert letter.first <= letter.last
    assert worker.status.rejected == 1
    assert said_of_sinks(caplog).count("sink.dead_letter") == 1


async def test_a_refusal_without_words_is_called_by_its_name(journal):
    far_side = FarSide(lambda _: Rejected())
    await record(journal, about("A"))
    async with at_work(dispatcher_for(journal, far_side)):
        while not (found := await letters(journal)):
            await asyncio.sleep(0.002)
    assert found[0].reason == "Rejected"


async def test_a_replayed_dead_letter_arrives_late(journal):
    far_side = FarSide(lambda event: Rejected("no") if event.id == "A/1" else None)
    await record(journal, about("A", 1), about("A", 2))
    async with at_work(dispatcher_for(journal, far_side)):
        await until(lambda: far_side.taken == ["A/2"])
        far_side.judge = lambda _: None
        (letter,) = await letters(journal)
        await journal.run(lambda store: replay_letter(store, letter))
        journal.announce()
        await until(lambda: far_side.taken == ["A/2", "A/1"])
        await comes_to(journal, [])
        await journal.run(lambda store: replay_sink(store, "sink"))
        journal.announce()
        await until(lambda: far_side.taken == ["A/2", "A/1", "A/1", "A/2"])


async def test_one_row_that_breaks_every_batch_cannot_stop_the_others(journal, hurry):
    def judge(event):
        if event.key == "K7":
            raise RuntimeError("poison")

    far_side = FarSide(judge)
    await record(journal, *(about(f"K{n}") for n in range(40)))
    async with at_work(dispatcher_for(journal, far_side)):
        await until(lambda: len(set(far_side.taken)) == 39)
        await record(journal, *(about(f"K{n}", 2) for n in range(40)))
        await comes_to(journal, ["K7/1", "K7/2"])


async def test_two_rows_are_parted_at_the_first_failure(journal, hurry):
    far_side = FarSide(lambda event: fail(RuntimeError()) if event.key == "A" else None)
    await record(journal, about("A"), about("B"))
    async with at_work(dispatcher_for(journal, far_side)):
        await until(lambda: far_side.taken)
    assert far_side.batches[0] == ["A/1", "B/1"]
    assert all(len(batch) == 1 for batch in far_side.batches[1:])


async def test_batches_grow_again_when_all_is_well(journal, hurry):
    far_side = FarSide(lambda _: fail(RuntimeError()))
    await record(journal, *(about(f"K{n}") for n in range(30)))
    async with at_work(dispatcher_for(journal, far_side)):
        await until(lambda: len(far_side.batches[-1:] or [()]) == 1 and far_side.entered > 6)
        far_side.judge = lambda _: None
        await until(lambda: len(far_side.taken) == 30)
        await record(journal, *(about(f"K{n}", 2) for n in range(30)))
        await until(lambda: len(far_side.taken) == 60)
    assert max(len(batch) for batch in far_side.batches[-3:]) > 5


async def test_a_sink_that_breaks_at_every_batch_is_not_entered_without_pause(journal):
    far_side = FarSide(lambda _: fail(RuntimeError()))
    await record(journal, *(about(f"K{n}") for n in range(200)))
    worker = dispatcher_for(journal, far_side)
    worker._limit = 1
    async with at_work(worker):
        await asyncio.sleep(0.5)
    assert 1 <= far_side.entered < 40


async def test_too_old_is_a_dead_letter_but_only_after_an_attempt(journal, hurry):
    answers = iter([Unavailable("busy")] * 2)
    far_side = FarSide(lambda _: next(answers, None))
    long_ago = time.time() - 10 * 86400
    await journal.append([about("A")], long_ago)
    async with at_work(dispatcher_for(journal, far_side, retry={"max_age": "1h"})):
        await until(lambda: far_side.taken == ["A/1"])
    assert await letters(journal) == []


async def test_what_was_tried_for_too_long_is_a_dead_letter(journal, hurry):
    far_side = FarSide(lambda event: Unavailable("busy") if event.id == "A/1" else None)
    await record(journal, about("A", 1), about("A", 2))
    async with at_work(dispatcher_for(journal, far_side, retry={"max_age": "50ms"})):
        await until(lambda: far_side.taken == ["A/2"])
    (letter,) = await letters(journal)
    assert letter.reason == "not delivered within retry.max_age; last: busy"
    assert letter.attempts >= 2
    assert letter.last - letter.first >= 0.05


async def test_what_was_tried_for_too_long_at_a_closed_door_is_a_dead_letter_too(journal, hurry):
    far_side = FarSide(entering=lambda: fail(Unavailable("nobody at home")))
    await record(journal, about("A", 1))
    worker = dispatcher_for(journal, far_side, retry={"max_age": "50ms"})
    async with at_work(worker):
        while not (found := await letters(journal)):
            await asyncio.sleep(0.005)
    assert found[0].reason == "not delivered within retry.max_age; last: nobody at home"
    assert worker.status.rejected == 1


async def test_what_a_sink_does_not_want_never_waits_for_it(journal, hurry):
    far_side = FarSide(entering=lambda: fail(Unavailable("nobody at home")))
    await record(journal, about("A", 1), about("B", 1, eventType="Freeze"))
    only = {"event_types": ["Freeze"]}
    worker = dispatcher_for(journal, far_side, only=only, retry={"max_age": "1h"})
    async with at_work(worker):
        await until(lambda: worker._entries_failed >= 2)
        assert await left(journal) == ["B/1"]
        assert await column(journal, "how", "A/1") == "filtered"
    assert worker.status.filtered == 1


async def test_a_closed_door_is_tried_again_and_then_all_goes_through(journal, hurry, caplog):
    closed = iter([OSError("refused"), Unavailable("busy"), TimeoutError(), None])

    def enter():
        if (error := next(closed)) is not None:
            raise error

    caplog.set_level(logging.INFO, "bridge")
    far_side = FarSide(entering=enter)
    await record(journal, about("A"), about("B"))
    worker = dispatcher_for(journal, far_side)
    async with at_work(worker):
        await comes_to(journal, [])
    assert far_side.batches == [["A/1", "B/1"]]
    assert await column(journal, "attempts", "A/1") == 4
    assert said_of_sinks(caplog) == ["sink.unavailable", "sink.connected"]


async def test_a_plugin_that_fails_before_it_is_entered_counts_as_closed(journal, hurry):
    far_side = FarSide()
    worker = dispatcher_for(journal, far_side)
    worker.place = lambda: fail(Unavailable("{vm_id} is not known yet"))
    await record(journal, about("A"))
    async with at_work(worker):
        await until(lambda: worker._entries_failed > 1)
        assert worker.status.error == "{vm_id} is not known yet"
        assert await column(journal, "attempts", "A/1") >= 1


async def test_an_entry_that_hangs_is_given_up(journal, hurry):
    async def hang():
        await asyncio.Event().wait()

    far_side = FarSide(entering=hang)
    worker = dispatcher_for(journal, far_side, retry={"timeout": "20ms"})
    async with at_work(worker):
        await until(lambda: worker._entries_failed == 2)
    assert worker.status.error == "no answer within 0.02 s"


@pytest.mark.parametrize("how", ["raises", "hangs"])
async def test_a_sink_that_cannot_let_go_is_entered_anew_all_the_same(journal, hurry, caplog, how):
    async def leave():
        await (asyncio.Event().wait() if how == "hangs" else asyncio.sleep(0))
        raise OSError("will not close")

    far_side = FarSide(lambda _: fail(RuntimeError()), leaving=leave)
    await record(journal, about("A"))
    async with at_work(dispatcher_for(journal, far_side, retry={"timeout": "30ms"})):
        await until(lambda: far_side.entered == 2)
        far_side.judge = lambda _: None
        await until(lambda: far_side.taken)
    assert "sink.not_closed" in said_of_sinks(caplog)


async def test_the_far_side_says_how_long_to_stay_away(journal, hurry):
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


async def test_how_long_to_stay_away_is_not_forgotten_at_a_closed_door(journal, hurry):
    closed = iter([None, Unavailable("closed"), Unavailable("closed")])

    def enter():
        if (error := next(closed, None)) is not None:
            raise error

    def judge(event):
        return Unavailable("later", retry_after=60) if event.key == "A" else None

    far_side = FarSide(judge, entering=enter)
    await record(journal, about("A"))
    async with at_work(dispatcher_for(journal, far_side)):
        await until(lambda: far_side.batches == [["A/1"]])
        far_side.judge = lambda _: fail(OSError("broken"))
        await record(journal, about("B"))
        await until(lambda: len(far_side.batches) == 2)
        far_side.judge = lambda _: None
        await comes_to(journal, ["A/1"])
    assert sum("A/1" in batch for batch in far_side.batches) == 1


async def test_a_closed_door_says_how_long_to_stay_away_too(journal, hurry):
    closed = iter([Unavailable("later", retry_after=0.3)])

    def enter():
        if (error := next(closed, None)) is not None:
            raise error

    far_side = FarSide(entering=enter)
    worker = dispatcher_for(journal, far_side)
    async with at_work(worker):
        await until(lambda: worker.status.state == "unavailable")
        began = time.monotonic()
        await record(journal, about("A", **soon(20)))
        await until(lambda: far_side.taken)
    assert time.monotonic() - began >= 0.25


async def test_news_with_little_notice_shortens_the_wait_at_a_closed_door(journal, monkeypatch):
    monkeypatch.setattr("bridge.delivery.dispatcher.backoff", lambda *_, most, **__: most)
    closed = iter([Unavailable("busy")])

    def enter():
        if (error := next(closed, None)) is not None:
            raise error

    far_side = FarSide(entering=enter)
    worker = dispatcher_for(journal, far_side)
    async with at_work(worker):
        await until(lambda: worker.status.state == "unavailable")
        await record(journal, about("A", **soon(5)))
        await until(lambda: far_side.taken, patience=5)


async def test_an_attempt_takes_no_longer_than_the_notice_allows(journal, hurry):
    far_side = FarSide(pause=60)
    await record(journal, about("A", **soon(3.5)))
    worker = dispatcher_for(journal, far_side)
    async with at_work(worker):
        await until(lambda: worker.status.error, patience=5)
    assert worker.status.error.startswith("no answer within 1")


async def test_filters_settle_without_sending(journal):
    far_side = FarSide()
    await record(journal, about("A", 1), about("B", 1, eventType="Freeze"), about("A", 2))
    worker = dispatcher_for(journal, far_side, only={"event_types": ["Fr*"]})
    async with at_work(worker):
        await worker.drained()
    assert far_side.taken == ["B/1"]
    assert [await column(journal, "how", name) for name in ("A/1", "A/2")] == ["filtered"] * 2
    assert await column(journal, "attempts", "A/1") == 0
    assert (worker.status.filtered, worker.status.delivered) == (2, 1)


async def test_what_a_later_state_has_overtaken_is_skipped_if_asked_for(journal):
    far_side = FarSide()
    await record(journal, about("A", 1), about("A", 2), about("B", 1), about("A", 3))
    worker = dispatcher_for(journal, far_side, stale="skip")
    async with at_work(worker):
        await worker.drained()
    assert far_side.taken == ["B/1", "A/3"]
    assert await column(journal, "how", "A/2") == "overtaken"


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


async def test_between_batches_waits_for_the_one_under_way(journal):
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


async def test_cancelled_in_mid_send_the_row_stays_and_the_sink_is_left(journal):
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


async def test_another_reason_is_no_other_state(journal, hurry, caplog):
    caplog.set_level(logging.INFO, "bridge")
    reasons = iter(f"reason {n}" for n in range(1000))
    far_side = FarSide(lambda _: Unavailable(next(reasons)))
    await record(journal, about("A"))
    worker = dispatcher_for(journal, far_side)
    async with at_work(worker):
        await until(lambda: len(far_side.batches) >= 4)
    assert said_of_sinks(caplog) == ["sink.connected", "sink.unavailable"]
    assert worker.status.error != "reason 0"


async def test_latency_is_from_the_record_to_the_answer(journal):
    far_side = FarSide()
    await journal.append([about("A")], time.time() - 7)
    worker = dispatcher_for(journal, far_side)
    async with at_work(worker):
        await until(lambda: worker.status.delivered)
    assert sum(worker.status.latency.counts) == 1
    assert 7 <= worker.status.latency.total < 12


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


async def test_a_far_side_that_goes_away_in_silence_is_entered_anew_before_there_is_news(
    journal, hurry
):
    far_side = FarSide()
    worker = dispatcher_for(journal, far_side)
    async with at_work(worker):
        await until(lambda: far_side.entered == 1)
        far_side.places[-1].lost(Unavailable("the broker is gone"))
        await until(lambda: far_side.entered == 2)
        await until(lambda: worker.status.state == "connected")
        assert far_side.left == 1
    assert (far_side.batches, worker.status.attempts_failed) == ([], 0)


async def test_a_sink_is_entered_anew_once_the_names_for_its_topics_are_known(journal):
    far_side, here = FarSide(), [Place({"vm_name": None})]
    worker = dispatcher_for(journal, far_side)
    worker.place = lambda: here[-1]
    async with at_work(worker):
        await record(journal, about("A", 1))
        await until(lambda: far_side.taken == ["A/1"])
        here.append(Place({"vm_name": "vm-0"}))
        journal.announce()
        await until(lambda: far_side.entered == 2)
        await record(journal, about("A", 2))
        await until(lambda: far_side.taken == ["A/1", "A/2"])
    assert [place.names["vm_name"] for place in far_side.places] == [None, "vm-0"]
    assert (far_side.entered, worker.status.attempts_failed) == (2, 0)


async def test_a_session_that_is_over_cannot_end_the_next_one(journal, hurry):
    far_side = FarSide()
    async with at_work(dispatcher_for(journal, far_side)):
        await until(lambda: far_side.entered == 1)
        far_side.places[0].lost(Unavailable("gone"))
        await until(lambda: far_side.entered == 2)
        far_side.places[0].lost(Unavailable("gone, once more"))
        await record(journal, about("A", 1))
        await until(lambda: far_side.taken == ["A/1"])
    assert far_side.entered == 2


@pytest.mark.parametrize("how", ["lost", "broken"])
async def test_who_asks_to_be_left_alone_is_not_entered_before(journal, monkeypatch, how):
    slept: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await real(0)

    monkeypatch.setattr("bridge.delivery.dispatcher.asyncio.sleep", sleep)

    def refuse(_):
        raise Unavailable("a twin threw us out", retry_after=60)

    far_side = FarSide(judge=refuse if how == "broken" else lambda _: None)
    async with at_work(dispatcher_for(journal, far_side)):
        await until(lambda: far_side.entered == 1)
        if how == "lost":
            far_side.places[-1].lost(Unavailable("a twin threw us out", retry_after=60))
        else:
            await record(journal, about("A", 1))
        await until(lambda: far_side.entered >= 2)
    assert 60 in slept
