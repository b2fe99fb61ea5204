"""`seb drill`, at a bridge that is really served, with and without votes."""

import asyncio
import json
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.served_bridge import announce
from support.until import until
from support.voting_bridge import polls, write_config
from support.world import ME, OTHER

from bridge.cli.commands import approve, drill
from bridge.cli.event_line import EventText
from bridge.drills.runner import conduct
from bridge.journal import Settlement
from bridge.journal.drills import every, under_way

BRISK: dict[str, Any] = {"margin": "100ms"}
SHORT = ("--type", "Freeze", "--notice", "1s", "--duration", "0s")
SEB = str(Path(sys.executable).with_name("seb"))


@asynccontextmanager
async def rehearsing(folder, **more):
    """A bridge that takes votes and runs drills, with two sinks that accept everything."""
    async with polls(folder, **{**BRISK, **more}) as made:
        runtime = made.served.runtime
        tasks = [asyncio.create_task(conduct(runtime)), asyncio.create_task(deliver(made))]
        try:
            yield made
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def deliver(made):
    journal = made.journal
    with journal.news() as news:
        while True:
            news.clear()
            for sink in list(made.served.runtime.status.sinks):
                rows = await journal.run(lambda s, sink=sink: s.unsettled(sink, 9, frozenset()))
                done = [Settlement(row.event.id, "delivered") for row in rows]
                await journal.settle(sink, done, rows[0].recorded if rows else 0.0)
                if rows:
                    news.set()
            await news.wait()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(drill, "EVERY", 0.05)
    monkeypatch.setattr(drill, "PATIENCE", 0.2)


@pytest.fixture
async def stage(tmp_path):
    async with rehearsing(tmp_path) as made:
        yield made


@pytest.fixture
def seb(stage, capsys):
    async def run(*words):
        code = await stage.run(drill, "drill", *words)
        return code, *capsys.readouterr()

    return run


async def running(made):
    return await made.journal.run(under_way)


async def approves(made):
    """Find the drill among the events, and approve it like any other."""
    await until(lambda: running(made))
    key = (await running(made)).key
    return await made.run(approve, "approve", key, "--wait", "0s")


async def test_an_approved_drill_passes_and_azure_is_not_notified(seb, stage):
    voting = asyncio.create_task(approves(stage))
    code, out, err = await seb("--type", "reboot", "--notice", "20s", "--duration", "0s")
    assert (code, await voting) == (0, 0)
    assert "Passed: the approvals were enough" in out.splitlines()[-1]
    assert "Azure would have been notified at" in out
    assert stage.told == []
    assert err.splitlines()[0].endswith("Ctrl-C stops it.")
    assert "seb: The drill is now completed." in err


async def test_a_drill_without_approvals_fails_and_names_who_was_missing(seb):
    code, out, _ = await seb(*SHORT)
    assert code == 1
    lines = out.splitlines()
    assert lines[-1] == f"Failed: not everyone approved in time; missing: {ME}."
    assert lines[-2] == "Azure would not have been notified. Nothing was sent."
    assert "Nobody voted." in lines
    assert f"Missing: {ME}" in lines


async def test_as_json_it_is_the_report_and_nothing_else(seb, stage):
    words = (*SHORT, "--description", "Tuesday")
    code, out, err = await seb(*words, "--resource", OTHER, "--resource", ME, "--json")
    report = json.loads(out)
    assert (code, err, report["passed"]) == (1, "", False)
    assert (report["resources"], report["description"]) == ([OTHER, ME], "Drill: Tuesday")
    assert (report["status"], report["azure"]["told"]) == ("Completed", False)
    _, same = await stage.served.control.ask("GET", report["href"])
    assert same == report


async def test_a_refused_and_a_silent_approver_are_named(tmp_path, capsys):
    allow = [{"approver": "orders"}, {"approver": "billing"}]
    async with rehearsing(tmp_path, allow=allow) as made:
        voting = asyncio.create_task(approves(made))
        code = await made.run(
            drill, "drill", "--type", "Freeze", "--notice", "2s", "--duration", "0s"
        )
        await voting
    out = capsys.readouterr().out
    assert code == 1
    assert "unauthorized" in out
    assert "Listed, but did not vote: orders, billing" in out


async def test_sinks_that_lack_something_are_given_a_little_more_time_and_no_longer(
    tmp_path, capsys
):
    async with polls(tmp_path, **BRISK) as made:
        task = asyncio.create_task(conduct(made.served.runtime))
        code = await made.run(drill, "drill", *SHORT)
        task.cancel()
    out = capsys.readouterr().out
    assert code == 1
    assert "sink bus did not get it" in out.splitlines()[-1]
    assert "pager" not in out.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "--type is required: one of Freeze, Reboot, Redeploy, Preempt, Terminate"),
        (("--type", "Rebot"), "--type must be one of Freeze, Reboot, Redeploy"),
        (("--type", "Reboot", "--notice", "25h"), "--notice must be from 1s to 24h"),
        (("--type", "Reboot", "--notice", "soon"), "--notice 'soon' is not a duration"),
        (("--type", "Reboot", "--duration", "1h"), "--duration must be from 0s to 15m"),
        (("--type", "Reboot", "--resource", ""), "--resource must be one line"),
        (
            ("--stop", "--type", "Reboot"),
            "--stop cannot be combined with options that say what to rehearse",
        ),
        (
            ("--stop", "--resource", "vm-0"),
            "--stop cannot be combined with options that say what to rehearse",
        ),
    ],
)
async def test_an_invalid_plan_is_not_sent(seb, stage, words, why):
    code, out, err = await seb(*words)
    assert (code, out) == (2, "")
    assert err.startswith(f"seb: {why}")
    assert await stage.journal.run(every) == []


async def test_another_drill_is_named_and_can_be_stopped(seb, stage, capsys):
    assert (await seb("--stop"))[::2] == (1, "seb: No drill is running.\n")
    first = asyncio.create_task(stage.run(drill, "drill", "--type", "Reboot"))
    await until(lambda: running(stage))
    key = (await running(stage)).key
    code = await stage.run(drill, "drill", "--type", "Reboot")
    assert code == 1
    assert f"The drill {key}, started by" in capsys.readouterr().err
    code = await stage.run(drill, "drill", "--stop")
    assert (code, await first) == (0, 1)
    out = capsys.readouterr().out
    assert out.count("Failed: the drill was stopped early.") == 2


async def test_without_a_bridge_there_is_no_drill(tmp_path, capsys, stage):
    file = write_config(
        tmp_path / "else.yaml", state_dir=str(tmp_path / "else"), http={"listen": None}
    )
    assert await stage.run(drill, "drill", "--type", "Reboot", file=file) == 1
    assert capsys.readouterr().err.startswith("seb: No bridge is running here")


async def test_ctrl_c_publishes_the_end_of_the_drill(stage):
    process = await asyncio.create_subprocess_exec(
        SEB, "drill", "--type", "Reboot", "-c", str(stage.file),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        line = await asyncio.wait_for(process.stderr.readline(), 20)
        assert line.decode().startswith("seb: Drill ")
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), 20)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 1, err
    assert b"Failed: the drill was stopped early." in out
    assert b"Traceback" not in err
    assert [one.status for one in await stage.journal.run(every)] == ["canceled"]


async def test_the_command_waits_for_a_bridge_that_restarts(stage, monkeypatch, capsys):
    missed: list[str] = []
    real = drill.Ask.__call__

    async def now_and_then(self, method, path, *more):
        if method == "GET" and len(missed) < 3:
            missed.append(path)
            raise drill.Unreachable("No bridge is running here.")
        return await real(self, method, path, *more)

    monkeypatch.setattr(drill.Ask, "__call__", now_and_then)
    assert await stage.run(drill, "drill", *SHORT) == 1
    assert len(missed) == 3
    assert "Failed: not everyone" in capsys.readouterr().out
    monkeypatch.setattr(drill, "GIVE_UP", -1.0)
    missed.clear()
    assert await stage.run(drill, "drill", *SHORT) == 1
    assert "No bridge is running here" in capsys.readouterr().err


async def test_a_caller_that_may_not_read_leaves_no_drill_running(stage, monkeypatch, capsys):
    real = drill.Ask.__call__

    async def blind(self, method, path, *more):
        if method == "GET":
            raise drill.RequestRefused(
                403, "This needs the scope read, which the token ops does not have."
            )
        return await real(self, method, path, *more)

    monkeypatch.setattr(drill.Ask, "__call__", blind)
    assert await stage.run(drill, "drill", "--type", "Freeze") == 1
    assert "This needs the scope read" in capsys.readouterr().err
    assert await running(stage) is None


async def test_watch_marks_a_drill(seb, stage):
    await seb(*SHORT)
    [made] = await stage.journal.run(every)
    _, event = await stage.served.control.ask("GET", f"/api/v1/events/{made.key}")
    told = [EventText(row["cloudevent"]).line(made.begun_at) for row in event["history"]]
    assert len(told) == 3
    assert all(f"{made.key}  DRILL; {ME}" in line for line in told)


async def test_a_real_event_beside_it_is_still_approved_at_azure(stage):
    await announce(stage.journal, "REAL", resources=(ME,))
    first = asyncio.create_task(stage.run(drill, "drill", "--type", "Reboot", "--duration", "0s"))
    await until(lambda: running(stage))
    assert await stage.run(approve, "approve", "--all") == 0
    assert await first == 0
    assert stage.told == [["REAL"]]
