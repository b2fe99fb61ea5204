"""While a sink fails, it gets little, and what it could take never waits behind what it cannot."""

import sqlite3

import pytest
from support.deliveries import comes_to, record
from support.journal_tools import about
from support.recording_sink import RecordingSink, at_work, dispatcher_for, fail
from support.until import until

from bridge.delivery import outage
from bridge.delivery.backoff import Pause
from bridge.plugins import Unavailable

DOWN = Unavailable("connection refused")
MANY = 3000


def returned(_):
    return DOWN


def raised(_):
    fail(OSError("connection reset"))


WAYS = pytest.mark.parametrize("down", [returned, raised], ids=["returned", "raised"])


@pytest.fixture
def pauses(monkeypatch):
    """Pauses of a dispatcher without a random part; each is a hundred times shorter."""
    begun: list[tuple[int, float, float]] = []
    real = Pause.begin

    def begin(self, problem, failures=0, first=0.5, most=30.0):
        begun.append((failures, first, most))
        self.draw = lambda: 1.0
        real(self, problem, failures, first / 100, most / 100)

    monkeypatch.setattr(Pause, "begin", begin)
    return begun


@WAYS
async def test_a_sink_that_is_down_gets_few_rows_however_many_wait(journal, pauses, down):
    recorder = RecordingSink(down)
    await record(journal, *(about(f"K{n}") for n in range(MANY)))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: len(recorder.batches) > 30)
    tried = sum(map(len, recorder.batches))
    assert tried <= 1000 + 30
    assert all(len(batch) == 1 for batch in recorder.batches[12:])


@WAYS
async def test_pauses_grow_to_the_longest_backoff_while_nothing_succeeds(
    journal, pauses, monkeypatch, down
):
    monkeypatch.setattr(outage, "QUICK", 12)
    await record(journal, *(about(f"K{n}") for n in range(20)))
    async with at_work(dispatcher_for(journal, RecordingSink(down))):
        await until(lambda: len(pauses) > 16)
    assert {most for _, _, most in pauses[:12]} == {outage.BREATH}
    assert [failures for failures, _, most in pauses[12:16] if most == 30.0] == [1, 2, 3, 4]


@WAYS
async def test_rows_are_tried_in_turn_so_that_none_hides_the_others(journal, pauses, down):
    recorder = RecordingSink(down)
    worker = dispatcher_for(journal, recorder)
    worker._outage.limit = 2
    await record(journal, *(about(f"K{n}", notBefore=None) for n in range(12)))
    async with at_work(worker):
        await until(lambda: len(recorder.batches) > 11)
    tried = [event_id for batch in recorder.batches[:11] for event_id in batch]
    assert tried == [f"K{n}/1" for n in range(12)]


@WAYS
async def test_many_rows_that_always_fail_hold_back_no_row_behind_them(journal, hurry, down):
    poison = {f"P{n}" for n in range(20)}
    recorder = RecordingSink(lambda event: down(event) if event.key in poison else None)
    await record(journal, *(about(key) for key in sorted(poison)))
    await record(journal, *(about(f"K{n}") for n in range(300)))
    async with at_work(dispatcher_for(journal, recorder)):
        await comes_to(journal, [f"{key}/1" for key in sorted(poison)])
    assert len(recorder.taken) == 300


@WAYS
async def test_a_new_row_gets_one_try_in_the_longest_pause(journal, pauses, monkeypatch, down):
    monkeypatch.setattr(outage, "QUICK", 0)
    monkeypatch.setattr(outage, "BREATH", 1e6)
    monkeypatch.setattr(outage, "MOST", 1e6)
    recorder = RecordingSink(lambda event: down(event) if event.key.startswith("K") else None)
    await record(journal, *(about(f"K{n}", notBefore=None) for n in range(5)))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: recorder.batches)
        await worker.between_batches()
        await record(journal, about("K9", notBefore=None))
        await until(lambda: ["K9/1"] in recorder.batches)
        await worker.between_batches()
        assert len(pauses) == 1, "the failure of a new row begins another pause"
        await record(journal, about("new", notBefore=None))
        await until(lambda: recorder.taken == ["new/1"])
        await comes_to(journal, [f"K{n}/1" for n in (0, 1, 2, 3, 4, 9)])


async def test_a_new_row_that_the_receiver_turns_away_begins_the_pause_that_it_asks_for(
    journal, pauses, monkeypatch
):
    monkeypatch.setattr(outage, "QUICK", 0)
    monkeypatch.setattr(outage, "BREATH", 1e6)
    monkeypatch.setattr(outage, "MOST", 1e6)
    busy = Unavailable("it answered 429", retry_after=3600)
    recorder = RecordingSink(lambda event: busy if event.key == "new" else DOWN)
    await record(journal, about("A", notBefore=None), about("B", notBefore=None))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: recorder.batches)
        await worker.between_batches()
        await record(journal, about("new", notBefore=None))
        await until(lambda: ["new/1"] in recorder.batches)
        await worker.between_batches()
        assert worker._pause.asked


@WAYS
async def test_a_new_row_is_tried_at_once_after_the_journal_was_replaced_in_an_outage(
    journal, pauses, monkeypatch, down
):
    monkeypatch.setattr(outage, "QUICK", 0)
    monkeypatch.setattr(outage, "BREATH", 1e6)
    monkeypatch.setattr(outage, "MOST", 1e6)
    await journal.claim("one VM")
    recorder = RecordingSink(lambda event: down(event) if event.key.startswith("K") else None)
    await record(journal, *(about(f"K{n}", notBefore=None) for n in range(5)))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: recorder.batches)
        await journal.claim("another VM")
        await record(journal, about("new", notBefore=None))
        await until(lambda: recorder.taken == ["new/1"])


@WAYS
async def test_new_rows_that_fail_together_are_split_at_once(journal, hurry, monkeypatch, down):
    """The sink fails for a long time because of old rows, and one of the new ones fails too."""
    monkeypatch.setattr(outage, "QUICK", 8)
    monkeypatch.setattr(outage, "MOST", 1e6)
    bad = {"old-1", "old-2", "K3"}
    recorder = RecordingSink(lambda event: down(event) if event.key in bad else None)
    await record(journal, about("old-1", notBefore=None), about("old-2", notBefore=None))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: worker._outage.failures > 10)
        await record(journal, *(about(f"K{n}", notBefore=None) for n in range(8)))
        await comes_to(journal, ["old-1/1", "old-2/1", "K3/1"])
    assert len(recorder.taken) == 7


@WAYS
async def test_after_an_outage_everything_arrives_in_batches_that_grow(journal, hurry, down):
    recorder = RecordingSink(down)
    await record(journal, *(about(f"K{n}") for n in range(400)))
    await record(journal, *(about(f"K{n}", 2) for n in range(400)))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: worker._outage.limit == 1)
        recorder.judge = lambda _: None
        await comes_to(journal, [])
    assert sorted(recorder.taken) == sorted(f"K{n}/{m}" for n in range(400) for m in (1, 2))
    first = [recorder.taken.index(f"K{n}/1") < recorder.taken.index(f"K{n}/2") for n in range(400)]
    assert all(first)
    assert max(map(len, recorder.batches[-6:])) >= 64


async def test_a_single_row_that_fails_pauses_nothing(journal, pauses):
    recorder = RecordingSink(lambda event: DOWN if event.key == "A" else None)
    await record(journal, about("A"))
    worker = dispatcher_for(journal, recorder)
    async with at_work(worker):
        await until(lambda: recorder.batches)
        await record(journal, about("B"))
        await until(lambda: recorder.taken == ["B/1"])
    assert not worker._outage.lasts
    assert pauses == []


@WAYS
async def test_the_work_of_an_outage_does_not_grow_with_what_waits(journal, pauses, down):
    few = await steps_of_an_outage(journal, down, 1000)
    many = await steps_of_an_outage(journal, down, 10_000)
    assert many < 1.5 * few


async def steps_of_an_outage(journal, down, waiting: int) -> int:
    """How many steps SQLite takes for fifty attempts while so many more rows wait."""
    await record(journal, *(about(f"{waiting}-{n}", notBefore=None) for n in range(waiting)))
    recorder = RecordingSink(down)
    steps = await journal.run(lambda store: Steps(store.connection))
    async with at_work(dispatcher_for(journal, recorder)):
        await until(lambda: len(recorder.batches) > 50)
    return await journal.run(lambda _: steps.end())


class Steps:
    """Counts what SQLite's machine does, in steps of a hundred instructions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection, self.count = connection, 0
        connection.set_progress_handler(self._step, 100)

    def _step(self) -> None:
        self.count += 1

    def end(self) -> int:
        self.connection.set_progress_handler(None, 0)
        return self.count
