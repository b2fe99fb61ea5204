"""Killed around each commit: the states of an event are one transaction with its document."""

import asyncio
import json
import signal
import sqlite3
from pathlib import Path

import pytest
from support.bridge_process import Stage, posts, stage
from support.judge import told

from bridge.core.cloudevent import PREFIX
from bridge.core.ids import digest
from bridge.core.state import Tracked, decode_tracked

TAIL = {"tail": 1}
LAST = 12
"""More commits than it takes to see the event, and to see it get worse."""


def tracked(at: Stage) -> list[Tracked]:
    with sqlite3.connect(at.journal) as db:
        return [decode_tracked(body) for (body,) in db.execute("SELECT body FROM tracked")]


def announced(at: Stage) -> list[str]:
    """The states that the CloudEvents in the journal tell, in order."""
    sql = "SELECT body FROM outbox WHERE type IN (?, ?) ORDER BY seq"
    kinds = [f"{PREFIX}{kind}.v1" for kind in ("scheduled", "updated")]
    with sqlite3.connect(at.journal) as db:
        return [json.loads(body)["data"]["state"] for (body,) in db.execute(sql, kinds)]


def check_states(at: Stage) -> None:
    """The document, the states and the CloudEvents are all there, or none of them."""
    for known in tracked(at):
        assert known.past[-1].digest == digest(known.event)
    assert [one.digest for known in tracked(at) for one in known.past] == announced(at)


def vote(at: Stage, seen: str) -> None:
    said = {"eventId": at.world.find("kept").event.event_id, "seen": seen}
    with (at.folder / "votes").open("a") as file:
        file.write(f"{json.dumps(said)}\n")


async def survive(at: Stage, **fault: int) -> str:
    """A Freeze becomes a Terminate around the kill at this commit; the state that it had first."""
    await at.start(faults={**TAIL, **fault})
    first = at.world.create(name="kept", type="Freeze", notice="1h", started_for=None).event
    await at.polled()
    at.world.update("kept", type="Terminate")
    await at.polled()
    if at.dead:
        assert at.process.returncode == -signal.SIGKILL, at.output()
        check_states(at)
        await at.start(faults=TAIL)
        await at.polled()
    return digest(first)


async def attempt(folder: Path, **fault: int) -> None:
    folder.mkdir()
    votes = folder / "votes"
    votes.touch()
    source = {"type": "tail", "trust": "transport", "path": str(votes)}
    approvals = {"from": {"bus": source}, "require": "any", "early_grace": "1s"}
    async with stage(folder, quick=True, approvals=approvals) as at:
        vote(at, await survive(at, **fault))
        await at.until(lambda: told(at.files[0], "approval.refused"), "the refusal")
        assert await at.stop() == 0
        [refused] = told(at.files[0], "approval.refused")
        assert (refused["data"]["reason"], posts(at)) == ("superseded", [])
        check_states(at)


@pytest.mark.timeout(300)
async def test_a_vote_on_what_the_event_was_is_superseded_wherever_the_bridge_died(tmp_path: Path):
    """After a commit the journal is as it is before the next one, so few of the former are enough."""
    places = [("before_commit", number) for number in range(1, LAST)]
    places += [("after_commit", number) for number in (LAST // 2, LAST - 1)]
    async with asyncio.TaskGroup() as side_by_side:
        for fault, number in places:
            side_by_side.create_task(attempt(tmp_path / f"{fault}-{number}", **{fault: number}))
