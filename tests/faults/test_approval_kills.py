"""Killed anywhere between an approval and Azure: the approval is never lost, and granted once."""

import asyncio
import contextlib
import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.bridge_process import Stage, stage
from support.judge import told
from support.ports import free_ports
from support.until import until

from bridge.platform import control_address, control_connector

SOURCE = {"tail": 1, "alone": 1}
"""A source whose messages are recorded one at a time."""
TOGETHER = {"tail": 1}


def says(at: Stage, **said: str) -> None:
    line = json.dumps({"eventId": at.world.find("kept").event.event_id, **said})
    with topic(at).open("a") as file:
        file.write(f"{line}\n")


def topic(at: Stage) -> Path:
    return at.folder / "approvals"


def granted(at: Stage) -> bool:
    return len(at.files) == 2 and all(told(path, "approval.granted") for path in at.files)


async def story(at: Stage, source: dict[str, int] = SOURCE, **fault: int) -> bool:
    """Approve for two VMs, one after the other; return whether the fault occurred on the way."""
    topic(at).touch()
    at.world.create(
        name="kept", type="Reboot", notice="1h", starts_after_approval="1h",
        resources=["vm-0", "vm-1"],
    )  # fmt: skip
    says(at, resource="vm-0", approver="orders")
    says(at, resource="vm-1", approver="billing")
    await at.start(faults={**source, **fault})
    await until(lambda: at.dead or granted(at), "a grant or a death")
    killed = at.dead
    if killed:
        assert at.process.returncode == -signal.SIGKILL, at.output()
        await at.start(faults=source)
        await until(lambda: granted(at), "a grant after all")
    assert await at.stop() == 0
    return killed


def verdict(at: Stage) -> None:
    """One release at Azure; one grant and one record without duplicates; all messages read."""
    posts = [one for one in at.simulator.truth if one["what"] == "approval"]
    assert [one["status"] for one in posts] == [200] * len(posts)
    assert sum(bool(one["released"]) for one in posts) == 1
    assert len(posts) <= 2
    for path in at.files:
        for kind, count in (("granted", 1), ("recorded", 1), ("refused", 0), ("failed", 0)):
            assert len({one["id"] for one in told(path, f"approval.{kind}")}) == count, kind


def all_read(at: Stage) -> None:
    with closing(sqlite3.connect(at.journal)) as journal:
        [(read,)] = journal.execute("SELECT value FROM checkpoint").fetchall()
    assert int(read) == topic(at).stat().st_size


async def attempt(
    folder: Path, fault: str, number: int, source: dict[str, int] = SOURCE, **config: Any
) -> bool:
    approvals = {
        "from": {"bus": {"type": "tail", "trust": "transport", "path": str(folder / "approvals")}}
    }
    async with stage(folder, approvals=approvals, quick=True, **config) as at:
        met = await story(at, source, **{fault: number})
        verdict(at)
        all_read(at)
    return met


async def every(
    folder: Path, fault: str, numbers: range, source: dict[str, int] = SOURCE, **config: Any
) -> None:
    """Run them in parallel, each killed at a different place."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(attempt(folder / f"{n}", fault, n, source, **config)) for n in numbers
        ]
    assert [task.result() for task in tasks] == [True] * len(numbers)


@pytest.mark.timeout(120)
async def test_a_kill_around_the_recording_of_a_vote_does_not_lose_it(tmp_path):
    await every(tmp_path, "around_ballot", range(1, 5))


@pytest.mark.timeout(120)
async def test_a_kill_around_the_last_look_and_around_the_grant_grants_once(tmp_path):
    await every(tmp_path, "around_ballot", range(5, 9))


@pytest.mark.timeout(120)
async def test_a_kill_around_the_commit_of_votes_that_came_together_loses_none_and_counts_each_once(
    tmp_path,
):
    """Before the commit (1), before the first acknowledgment (2), and around the last look.

    Traces go nowhere meanwhile: they change nothing about votes.
    """
    nowhere = {"otlp": f"http://127.0.0.1:{free_ports(1)[0]}"}
    await every(tmp_path, "around_ballot", range(1, 5), TOGETHER, telemetry=nowhere)


@pytest.mark.timeout(120)
async def test_a_kill_between_the_acknowledgments_of_votes_that_came_together_loses_none(tmp_path):
    await every(tmp_path, "after_ack", range(1, 3), TOGETHER)


@pytest.mark.timeout(120)
async def test_a_kill_around_the_post_grants_once(tmp_path):
    await every(tmp_path, "around_post", range(1, 4))


# --- messages without an id ----------------------------------------------------------------------


async def changed_mind(folder: Path, number: int) -> None:
    """Hold, release and hold again in equal words: the place of each tells them apart."""
    approvals = {
        "from": {"bus": {"type": "tail", "trust": "transport", "path": str(folder / "approvals")}},
        "require": "any",
    }
    async with stage(folder, approvals=approvals, quick=True) as at:
        topic(at).touch()
        at.world.create(name="kept", type="Reboot", notice="1h", resources=["vm-0", "vm-1"])
        for decision in ("hold", "release", "hold"):
            says(at, approver="orders", decision=decision)
        says(at, approver="billing")
        await at.start(faults={**SOURCE, "around_ballot": number})
        await until(lambda: at.dead, "its death")
        await at.start(faults=SOURCE)
        await until(lambda: is_read(at), "all to be read after all")
        with closing(sqlite3.connect(at.journal)) as journal:
            votes = journal.execute("SELECT approver, body FROM vote ORDER BY approver").fetchall()
        cast = [(who, json.loads(body)["decision"]) for who, body in votes]
        assert cast == [("billing", "approve"), ("orders", "hold")]
        assert [one for one in at.simulator.truth if one["what"] == "approval"] == []


def is_read(at: Stage) -> bool:
    with closing(sqlite3.connect(at.journal)) as journal:
        found = journal.execute("SELECT value FROM checkpoint").fetchall()
    return found == [(str(topic(at).stat().st_size),)]


@pytest.mark.timeout(120)
async def test_a_kill_between_hold_release_and_hold_loses_none_of_them(tmp_path):
    async with asyncio.TaskGroup() as group:
        for number in range(1, 9):
            group.create_task(changed_mind(tmp_path / f"{number}", number))


# --- sent over the control socket ----------------------------------------------------------------


async def asks(at: Stage, vm: str) -> str:
    """A caller that repeats its vote under the same id until it gets an answer."""
    said = {"eventId": at.world.find("kept").event.event_id, "resource": vm, "id": f"ready-{vm}"}
    address = control_address(at.state_dir)
    for _ in range(1000):
        with contextlib.suppress(aiohttp.ClientError, OSError):
            async with (
                aiohttp.ClientSession(connector=control_connector(address)) as session,
                session.post("http://bridge/api/v1/approvals", json=said) as answer,
            ):
                if answer.status == 202:
                    [outcome] = (await answer.json())["outcomes"]
                    return outcome["outcome"]
        if at.dead:
            await at.start(faults=SOURCE)
        await asyncio.sleep(0.05)
    raise AssertionError(at.output())


async def called(folder: Path, fault: str, number: int) -> bool:
    async with stage(folder, quick=True) as at:
        at.world.create(
            name="kept", type="Reboot", notice="1h", starts_after_approval="1h",
            resources=["vm-0", "vm-1"],
        )  # fmt: skip
        await at.start(faults={**SOURCE, fault: number})
        answers = [await asks(at, vm) for vm in ("vm-0", "vm-1")]
        await until(lambda: at.dead or granted(at), "a grant or a death")
        if at.dead:
            await at.start(faults=SOURCE)
            await until(lambda: granted(at), "a grant after all")
        assert set(answers) <= {"recorded", "pending", "granted"}
        assert await at.stop() == 0
        verdict(at)
        return at.number > 1


@pytest.mark.timeout(120)
async def test_a_kill_around_a_local_vote_grants_once(tmp_path):
    places = [("around_ballot", 1), ("around_ballot", 4), ("around_post", 1), ("around_post", 3)]
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(called(tmp_path / f"{fault}-{number}", fault, number))
            for fault, number in places
        ]
    assert [task.result() for task in tasks] == [True] * len(places)


# --- in a flood ----------------------------------------------------------------------------------

FLOOD = 120


def pour(at: Stage) -> None:
    for number in range(FLOOD):
        decision = ("hold", "release")[number % 2]
        says(at, approver="x", decision=decision, id=f"{number}-".ljust(500, "\U0001f600"))


def accounts(at: Stage) -> dict[str, int]:
    """What the journal believes that votes take, after all of them are deleted."""
    with closing(sqlite3.connect(at.journal)) as journal:
        for table in ("vote", "early", "message_key", "outbox"):
            journal.execute(f"DELETE FROM {table}")
        return dict(journal.execute("SELECT owner, bytes FROM space"))


async def flooded(folder: Path, number: int) -> None:
    """Killed in a flood of unverified votes, while a sink waits for what was announced before."""
    source = {"type": "tail", "trust": "transport", "path": str(folder / "approvals")}
    right = {"type": "file", "path": str(folder / "absent" / "right.jsonl")}
    config: dict[str, Any] = {
        "approvals": {"from": {"bus": source}, "require": {"approvers": ["nobody"]}},
        "journal": {"max_size": "1MiB"},
        "sinks": {"right": right},
    }
    async with stage(folder, quick=True, **config) as at:
        at.world.create(name="kept", type="Reboot", notice="1h", started_for=None)
        pour(at)
        (folder / "absent").touch()
        await at.start(faults={**SOURCE, "around_ballot": number})
        await until(lambda: at.dead, "a death", at.output)
        await at.start(faults=SOURCE)
        await at.until_said("http.listening")
        await at.polled()
        await at.until(lambda: checkpoint(at) == topic(at).stat().st_size, "all messages read")
        (folder / "absent").unlink()
        written = Path(right["path"])
        await at.until(
            lambda: written.exists() and told(written, "scheduled"), "what was announced"
        )
        assert at.said("journal.lost") == []
        assert await at.stop() == 0
        assert set(accounts(at).values()) == {0}


def checkpoint(at: Stage) -> int:
    with closing(sqlite3.connect(at.journal)) as journal:
        return sum(int(value) for (value,) in journal.execute("SELECT value FROM checkpoint"))


@pytest.mark.timeout(120)
async def test_a_kill_in_a_flood_of_unverified_votes_loses_no_cloudevent(tmp_path):
    async with asyncio.TaskGroup() as group:
        for number in (2 * FLOOD - 41, 2 * FLOOD - 40, FLOOD):
            group.create_task(flooded(tmp_path / f"{number}", number))
