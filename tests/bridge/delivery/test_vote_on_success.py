"""What a sink has to say about a delivery: a note for the journal, and this VM's vote."""

import asyncio

import pytest
from support.deliveries import column, comes_to, left, record
from support.far_side import FarSide, at_work, dispatcher_for
from support.journal_tools import about, opened
from support.until import until

from bridge.journal import views
from bridge.plugins import Delivered, Unavailable


@pytest.fixture
async def journal(tmp_path):
    async with opened(tmp_path / "journal.db", "sink") as made:
        yield made


class Desk:
    """Takes votes, and remembers whether the row was still open when each was cast."""

    def __init__(self, journal):
        self.journal, self.cast, self.open = journal, [], []
        self.problem: Exception | None = None

    async def vote(self, event, sink):
        self.open.append(event.id in await left(self.journal))
        if self.problem is not None:
            raise self.problem
        self.cast.append((event.id, sink))


def voting(journal, far_side, **settings):
    desk = Desk(journal)
    worker = dispatcher_for(journal, far_side, **settings)
    worker.vote = desk.vote
    return worker, desk


async def test_a_note_is_kept_with_the_delivery_and_shown(journal):
    far_side = FarSide(lambda event: Delivered("ticket 17") if event.key == "A" else None)
    await record(journal, about("A"), about("B"))
    async with at_work(dispatcher_for(journal, far_side)):
        await comes_to(journal, [])
    assert await column(journal, "note", "A/1") == "ticket 17"
    assert await column(journal, "note", "B/1") is None
    [shown] = await journal.run(lambda store: views.history(store, "A"))
    [delivery] = shown["deliveries"]
    assert (delivery["outcome"], delivery["note"]) == ("delivered", "ticket 17")


async def test_a_note_about_what_first_failed_is_kept_too(journal):
    answers = iter([Unavailable("busy", retry_after=0.001)])
    far_side = FarSide(lambda _: next(answers, Delivered("at last")))
    await record(journal, about("A"))
    async with at_work(dispatcher_for(journal, far_side)):
        await comes_to(journal, [])
    assert await column(journal, "note", "A/1") == "at last"
    assert await column(journal, "error", "A/1") == "busy"


async def test_a_note_that_only_memory_holds_gets_into_the_file_with_its_delivery(journal):
    far_side = FarSide(lambda _: Unavailable("busy", retry_after=0.001))
    await record(journal, about("A"))
    async with at_work(dispatcher_for(journal, far_side)):
        await until(lambda: len(far_side.batches) > 1)
        await journal.run(lambda store: store.connection.execute("PRAGMA query_only = ON"))
        far_side.judge = lambda _: Delivered("said in the dark")
        await comes_to(journal, [])
        assert journal.trouble
        assert await journal.repair()
    assert await column(journal, "note", "A/1") == "said in the dark"


async def test_the_vote_is_cast_before_the_row_is_settled_and_in_the_sinks_name(journal):
    worker, desk = voting(journal, FarSide(lambda _: Delivered("drained", approves=True)))
    await record(journal, about("A"))
    async with at_work(worker):
        await comes_to(journal, [])
    assert (desk.cast, desk.open) == ([("A/1", "sink")], [True])
    assert await column(journal, "note", "A/1") == "drained"


@pytest.mark.parametrize(
    ("approves", "data"),
    [(False, {}), (True, {"status": "Started"}), (True, {"approvable": False})],
)
async def test_no_vote_is_cast_unless_the_sink_approves_of_what_may_be_approved(
    journal, approves, data
):
    worker, desk = voting(journal, FarSide(lambda _: Delivered("drained", approves=approves)))
    await record(journal, about("A", **data))
    async with at_work(worker):
        await comes_to(journal, [])
    assert desk.open == []


@pytest.mark.parametrize("problem", [Unavailable("the disk is full"), OSError("the disk is full")])
async def test_a_vote_that_cannot_be_cast_keeps_the_delivery(journal, problem):
    far_side = FarSide(
        lambda event: Delivered(approves=True) if event.key == "A" else Delivered("fine")
    )
    worker, desk = voting(journal, far_side)
    desk.problem = problem
    await record(journal, about("A"), about("B"))
    async with at_work(worker):
        await comes_to(journal, ["A/1"])
        assert await column(journal, "error", "A/1") == "the disk is full"
        desk.problem = None
        await comes_to(journal, [])
    assert desk.cast == [("A/1", "sink")]
    assert far_side.entered == 1


async def test_where_no_approvals_are_taken_the_delivery_is_kept_and_says_so(journal):
    worker = dispatcher_for(journal, FarSide(lambda _: Delivered(approves=True)))
    await record(journal, about("A"))
    async with at_work(worker):
        await until(lambda: worker.status.state == "unavailable")
    assert worker.status.error == "no approvals are taken here"
    assert await left(journal) == ["A/1"]


async def test_a_desk_that_does_not_answer_is_not_waited_for_for_ever(journal):
    worker = dispatcher_for(
        journal, FarSide(lambda _: Delivered(approves=True)), retry={"timeout": "30ms"}
    )
    worker.vote = lambda *_: asyncio.Event().wait()
    await record(journal, about("A"))
    async with at_work(worker):
        await until(lambda: worker.status.state == "unavailable")
    assert await left(journal) == ["A/1"]
