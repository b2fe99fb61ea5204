"""A drain script whose success is this VM's approval, from the announcement to Azure and back."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.bridge_process import Stage, file_sink, stage
from support.judge import told
from support.until import until

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="shell scripts"),
    pytest.mark.timeout(120),
]

DRAIN = 'echo "$EVENT_ID" >> "$RUNS"; echo "drained $EVENT_VM"'
ANNOUNCED = ["azure.scheduledevents.scheduled.v1", "azure.scheduledevents.updated.v1"]


def drain(folder: Path, script: str = DRAIN, **more) -> dict:
    return {
        "type": "command",
        "argv": ["/bin/sh", "-c", script],
        "env": {"RUNS": str(folder / "runs")},
        "only": {"types": ANNOUNCED},
        "then": "approve",
        **more,
    }


def sinks(folder: Path, **more) -> dict:
    return {"left": file_sink(folder, "left"), "drain": drain(folder, **more)}


def runs(at: Stage) -> int:
    path = at.folder / "runs"
    return len(path.read_text().split()) if path.exists() else 0


def heard(at: Stage, kind: str) -> list:
    path = at.folder / "left.jsonl"
    return told(path, kind) if path.exists() else []


def outcomes(at: Stage, kind: str) -> list:
    return heard(at, f"approval.{kind}")


def reboot(at: Stage) -> None:
    at.world.create(name="kept", type="Reboot", notice="1h", starts_after_approval="1s")


def asked(at: Stage, sql: str) -> list:
    with closing(sqlite3.connect(at.journal)) as journal:
        return journal.execute(sql).fetchall()


def granted_once(at: Stage) -> None:
    posts = [one for one in at.simulator.truth if one["what"] == "approval"]
    assert sum(bool(one["released"]) for one in posts) == 1
    [granted] = outcomes(at, "granted")
    assert (granted["data"]["approver"], granted["data"]["via"]) == ("sink:drain", "sink")
    assert granted["data"]["verified"] is True
    assert outcomes(at, "refused") == []
    [(body,)] = asked(at, "SELECT body FROM vote")
    assert json.loads(body)["resource"] == "vm-0"


async def test_a_drained_vm_is_released_and_the_journal_says_what_the_script_said(tmp_path):
    async with stage(tmp_path, sinks=sinks(tmp_path)) as at:
        reboot(at)
        await at.start()
        await at.until(lambda: heard(at, "started"), "the start")
        assert await at.stop() == 0
        granted_once(at)
        assert runs(at) == 1
        notes = asked(at, "SELECT how, note FROM delivery WHERE sink = 'drain' AND note NOT NULL")
        assert notes == [("delivered", "drained vm-0")]


async def test_a_kill_between_success_and_its_record_runs_it_again_and_grants_once(tmp_path):
    async with asyncio.TaskGroup() as side_by_side:
        for number in (1, 2):
            side_by_side.create_task(killed_around_its_vote(tmp_path / f"{number}", number))


async def killed_around_its_vote(folder: Path, number: int) -> None:
    async with stage(folder, quick=True, sinks=sinks(folder)) as at:
        reboot(at)
        await at.start(faults={"around_vote": number})
        await until(lambda: at.dead, "a death")
        assert at.process is not None
        assert at.process.returncode == -signal.SIGKILL
        assert len(asked(at, "SELECT body FROM vote")) == number - 1
        await at.start()
        await at.until(lambda: outcomes(at, "granted"), "a grant")
        await at.until(lambda: runs(at) == 2, "the second run")
        await at.polled(3)
        assert await at.stop() == 0
        granted_once(at)


async def test_a_bridge_that_leaves_takes_its_commands_along(tmp_path):
    script = 'sleep 60 & echo "$! $$" > "$RUNS.part"; mv "$RUNS.part" "$RUNS"; wait'
    config: dict[str, Any] = {"sinks": sinks(tmp_path, script=script), "stop_grace": "200ms"}
    async with stage(tmp_path, **config) as at:
        reboot(at)
        await at.start()
        await at.until((tmp_path / "runs").exists, "a command that runs")
        assert await at.stop() == 0
        for pid in (tmp_path / "runs").read_text().split():
            await until(partial(over, int(pid)), f"the end of {pid}")
        assert outcomes(at, "granted") == []
        waiting = "SELECT COUNT(*) FROM delivery WHERE sink = 'drain' AND how = 'delivered'"
        assert asked(at, waiting) == [(0,)]


def over(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


async def test_a_drain_for_what_the_event_was_does_not_approve_what_it_became(tmp_path):
    """It drains for a Freeze, which meanwhile becomes a Terminate of two VMs."""
    waits = f'{DRAIN}; while [ "$EVENT_TYPE" = Freeze -a ! -e "$RUNS.go" ]; do sleep 0.1; done'
    refuses = f'{waits}; [ "$EVENT_TYPE" = Freeze ]'
    async with stage(tmp_path, quick=True, sinks=sinks(tmp_path, script=refuses)) as at:
        at.configure(approvals={"require": "any"})
        at.world.create(name="kept", type="Freeze", notice="1h", started_for=None)
        await at.start()
        await at.until(lambda: runs(at) == 1, "the drain")
        at.world.update("kept", type="Terminate", resources=["vm-0", "vm-1"])
        await at.until(lambda: heard(at, "updated"), "the worse state")
        (tmp_path / "runs.go").touch()
        await at.until(lambda: outcomes(at, "refused"), "the refusal")
        await at.polled(3)
        assert await at.stop() == 0
        assert [one["data"]["reason"] for one in outcomes(at, "refused")] == ["superseded"]
        assert [one for one in at.simulator.truth if one["what"] == "approval"] == []
