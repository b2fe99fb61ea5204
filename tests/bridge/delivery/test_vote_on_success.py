"""This VM's vote, which the success of a sink casts."""

import asyncio

import pytest
from support.deliveries import column, comes_to, left, record
from support.journal_tools import about
from support.recording_sink import RecordingSink, at_work, dispatcher_for
from support.until import until

from bridge.plugins import Delivered, Unavailable


class VoteRecorder:
    """Records votes, and whether the row was still open when each was cast."""

    def __init__(self, journal):
        self.journal, self.cast, self.open = journal, [], []
        self.problem: Exception | None = None

    async def vote(self, event, sink):
        self.open.append(event.id in await left(self.journal))
        if self.problem is not None:
            raise self.problem
        self.cast.append((event.id, sink))


def voting(journal, recorder, **settings):
    voted = VoteRecorder(journal)
    worker = dispatcher_for(journal, recorder, **settings)
    worker.vote = voted.vote
    return worker, voted


async def test_the_vote_is_cast_before_the_row_is_settled_and_in_the_sinks_name(journal):
    worker, voted = voting(journal, RecordingSink(lambda _: Delivered("drained", approves=True)))
    await record(journal, about("A"))
    async with at_work(worker):
        await comes_to(journal, [])
    assert (voted.cast, voted.open) == ([("A/1", "sink")], [True])
    assert await column(journal, "note", "A/1") == "drained"


@pytest.mark.parametrize(
    ("approves", "data"),
    [(False, {}), (True, {"status": "Started"}), (True, {"approvable": False})],
)
async def test_a_vote_is_cast_only_if_the_sink_approves_an_approvable_event(
    journal, approves, data
):
    worker, voted = voting(
        journal, RecordingSink(lambda _: Delivered("drained", approves=approves))
    )
    await record(journal, about("A", **data))
    async with at_work(worker):
        await comes_to(journal, [])
    assert voted.open == []


@pytest.mark.parametrize("problem", [Unavailable("the disk is full"), OSError("the disk is full")])
async def test_a_vote_that_cannot_be_cast_keeps_the_delivery(journal, problem):
    recorder = RecordingSink(
        lambda event: Delivered(approves=True) if event.key == "A" else Delivered("fine")
    )
    worker, voted = voting(journal, recorder)
    voted.problem = problem
    await record(journal, about("A"), about("B"))
    async with at_work(worker):
        await comes_to(journal, ["A/1"])
        assert await column(journal, "error", "A/1") == "the disk is full"
        voted.problem = None
        await comes_to(journal, [])
    assert voted.cast == [("A/1", "sink")]
    assert recorder.entered == 1


async def test_without_approvals_the_delivery_is_kept_and_says_why(journal):
    worker = dispatcher_for(journal, RecordingSink(lambda _: Delivered(approves=True)))
    await record(journal, about("A"))
    async with at_work(worker):
        await until(lambda: worker.status.state == "unavailable")
    assert worker.status.error == "this bridge does not accept approvals"
    assert await left(journal) == ["A/1"]


async def test_a_vote_that_gets_no_answer_times_out(journal):
    async def silent(*_: object) -> None:
        await asyncio.Event().wait()

    worker = dispatcher_for(
        journal, RecordingSink(lambda _: Delivered(approves=True)), retry={"timeout": "30ms"}
    )
    worker.vote = silent
    await record(journal, about("A"))
    async with at_work(worker):
        await until(lambda: worker.status.state == "unavailable")
    assert await left(journal) == ["A/1"]
