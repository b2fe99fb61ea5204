"""Real commands: started, fed, stopped in time, and none is left behind."""

import asyncio
import os
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from support.cloudevents import LARGEST, make
from support.command_runs import command, outcome, outcomes, shell
from support.until import until

from bridge.plugins import Delivered, Unavailable
from sinks.command import process

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shell scripts")


def over(pid: int) -> bool:
    return not running_still(pid)


def running_still(pid: int) -> bool:
    """A zombie has ended, even if nobody has asked yet how."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


async def test_a_command_need_not_read_what_it_is_given():
    assert await outcomes(command("true"), make(size=LARGEST)) == [None]
    assert await outcomes(shell("exec <&-; exit 0"), make(size=LARGEST)) == [None]


async def test_a_command_that_takes_too_long_is_stopped_with_all_that_it_started(tmp_path):
    script = f"sleep 60 & echo $! > {tmp_path}/child; echo begun; wait"
    result = await outcome(shell(script, timeout="300ms"))
    assert type(result) is Unavailable
    assert str(result) == "it ran for longer than 300ms and was stopped: begun"
    child = int((tmp_path / "child").read_text())
    await until(partial(over, child))


async def test_it_is_asked_to_end_before_it_is_ended(tmp_path):
    script = f"trap 'touch {tmp_path}/tidied; exit 0' TERM; sleep 60 & wait"
    assert type(await outcome(shell(script, timeout="300ms"))) is Unavailable
    assert (tmp_path / "tidied").exists()


async def test_one_that_will_not_hear_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(process, "GRACE", 0.2)
    script = f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 0.05; done"
    assert type(await outcome(shell(script, timeout="300ms"))) is Unavailable
    assert not running_still(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("hurried", [False, True])
async def test_a_canceled_run_leaves_no_process_behind(tmp_path, monkeypatch, hurried):
    monkeypatch.setattr(process, "GRACE", 10.0 if hurried else 0.2)
    script = (
        f"trap '' TERM; sleep 60 & echo $! $$ > {tmp_path}/p; mv {tmp_path}/p {tmp_path}/pids; wait"
    )
    job = process.Task(["/bin/sh", "-c", script], b"", {"PATH": os.defpath}, "/")
    task = asyncio.create_task(process.run(job, 60))
    await until((tmp_path / "pids").exists)
    task.cancel()
    if hurried:
        await asyncio.sleep(0.1)
        task.cancel()
    began = time.monotonic()
    await asyncio.wait({task})
    assert task.cancelled()
    assert time.monotonic() - began < 8
    for pid in (tmp_path / "pids").read_text().split():
        await until(partial(over, int(pid)))
    # Python 3.11 waits for a child in a thread; without its report, the loop ends too early.
    await until(lambda: not any("waitpid" in one.name for one in threading.enumerate()))


async def test_a_daemon_that_a_command_leaves_running_delays_nothing(tmp_path):
    script = f"sleep 60 & echo $! > {tmp_path}/pid; echo started"
    assert await outcome(shell(script)) == Delivered("started")
    daemon = int((tmp_path / "pid").read_text())
    assert running_still(daemon)
    os.kill(daemon, 9)


async def test_it_runs_where_it_is_told_to(tmp_path):
    assert await outcome(command("pwd")) == Delivered("/")
    assert await outcome(command("pwd", cwd=str(tmp_path))) == Delivered(str(tmp_path))
