"""A vote sent to a bridge, and the wait for Azure's answer."""

import asyncio
import json

import pytest
from support.served_bridge import announce
from support.until import until
from support.voting_bridge import ALONE, FIRST, GRANTED
from support.world import ME, OTHER

from bridge.cli.commands import approve
from bridge.cli.location import read_location
from bridge.cli.shell import Ask
from bridge.cli.voting.ballot import Ballot, Choice
from bridge.cli.voting.cast import VoteMessage, Voting


@pytest.fixture
def seb(voting):
    return voting


async def streams(made):
    _, text = await made.served.control.ask("GET", "/metrics")
    return "\nseb_streams 1\n" in text


async def test_the_command_waits_for_a_slow_azure(open_polls, capsys):
    await announce(open_polls.journal, FIRST, **ALONE)
    open_polls.intake.patience = 0.0
    open_polls.answers.clear()
    running = asyncio.create_task(open_polls.run(approve, "approve", FIRST))
    await until(lambda: streams(open_polls))
    open_polls.answers.set()
    assert await running == 0
    assert capsys.readouterr().out == f"{FIRST}  {GRANTED}\n"


async def test_the_wait_for_an_azure_that_does_not_answer_is_short(seb, open_polls):
    await announce(open_polls.journal, FIRST, **ALONE)
    open_polls.intake.patience = 0.0
    open_polls.answers.clear()
    code, out, _ = await seb("approve", FIRST, "--wait", "100ms")
    assert code == 0
    assert out.startswith(f"{FIRST}  pending: the votes are enough; Azure has not answered yet")


def test_each_message_has_its_own_id_in_its_body():
    ballot = Ballot((FIRST,), Choice())
    one, other = VoteMessage.write(ballot), VoteMessage.write(ballot)
    assert json.loads(one.body)["id"] == one.id
    assert one.id != other.id


async def test_a_vote_comes_back_as_a_verdict_that_says_what_is_missing(open_polls):
    await announce(open_polls.journal, FIRST)
    ask = Ask(read_location(open_polls.file, {}))
    [verdict] = await Voting(ask).cast(Ballot((FIRST,), Choice(), ME))
    assert (verdict.outcome, verdict.bad, list(verdict.missing)) == ("recorded", False, [OTHER])
    assert open_polls.told == []


async def test_a_vote_that_is_refused_comes_back_as_a_verdict_too(open_polls):
    ask = Ask(read_location(open_polls.file, {}))
    await announce(open_polls.journal, FIRST)
    [verdict] = await Voting(ask).cast(Ballot((FIRST,), Choice()))
    assert (verdict.outcome, verdict.reason) == ("refused", "resource-required")
    assert verdict.bad
