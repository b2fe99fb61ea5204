"""SIGHUP: all or nothing, and each sink's place is its own."""

import asyncio
import contextlib
import signal
import sqlite3
from pathlib import Path

from support.bridge_process import Stage, file_sink, stage
from support.judge import kind, told, transitions


async def reload(at: Stage, says: str, **changes: object) -> None:
    at.configure(**changes)
    at.signal(signal.SIGHUP)
    await at.until_said(says)


async def in_both(at: Stage, what: str, count: int = 1) -> None:
    await at.until(
        lambda: len(at.files) == 2 and all(len(told(p, what)) == count for p in at.files), what
    )


async def test_a_bad_file_changes_nothing(tmp_path: Path):
    async with stage(tmp_path, quick=True) as at:
        at.world.create(name="kept", type="Reboot", notice="1h", started_for=None)
        await at.start()
        await in_both(at, "scheduled")
        good = at.config["sinks"]
        bad = {"left": good["left"], "right": {"type": "file", "pth": "nowhere"}}
        await reload(at, "configuration.rejected", sinks=bad)
        assert "pth" in at.said("configuration.rejected")[0]["error"]
        at.configure(sinks=good)
        at.world.start("kept")
        await in_both(at, "started")
        assert await at.stop() == 0


async def test_what_needs_a_restart_is_refused_as_a_whole(tmp_path: Path):
    async with stage(tmp_path, quick=True) as at:
        await at.start()
        await at.polled(1)
        sinks = {**at.config["sinks"], "third": file_sink(tmp_path, "third")}
        elsewhere = str(tmp_path / "elsewhere")
        await reload(at, "configuration.rejected", sinks=sinks, state_dir=elsewhere)
        assert "needs a restart" in at.said("configuration.rejected")[0]["error"]
        await at.polled(2)
        assert not (tmp_path / "third.jsonl").exists()
        assert await at.stop() == 0


async def test_a_new_sink_begins_with_what_is_pending_now(tmp_path: Path):
    async with stage(tmp_path, quick=True) as at:
        at.world.create(name="over", type="Reboot", status="Started", started_for=None)
        at.world.create(name="kept", type="Reboot", notice="1h", started_for=None)
        await at.start()
        await in_both(at, "scheduled")
        at.world.complete("over")
        at.world.update("kept", description="Something else is written here")
        await in_both(at, "completed")
        await in_both(at, "updated")
        third = tmp_path / "third.jsonl"
        sinks = {**at.config["sinks"], "third": file_sink(tmp_path, "third")}
        await reload(at, "configuration.loaded", sinks=sinks)
        await at.until(lambda: third.exists() and told(third, "updated"), "the new sink")
        at.world.start("kept")
        await at.until(lambda: told(third, "started"), "what came next")
        assert await at.stop() == 0
        assert [kind(each) for each in transitions(third)] == ["updated", "started"]
        assert [kind(each) for each in transitions(at.files[0])].count("started") == 2


async def test_a_removed_sink_keeps_no_rows(tmp_path: Path):
    (tmp_path / "blocked").write_text("in the way")
    sinks = {
        "left": file_sink(tmp_path, "left"),
        "dead": file_sink(tmp_path / "blocked", "dead"),
    }
    keep = {"keep": "1s"}
    async with stage(tmp_path, quick=True, sinks=sinks, journal=keep, stop_grace="200ms") as at:
        at.world.create(name="kept", type="Reboot", notice="1h", started_for=None)
        assert await at.once() == 1
        before = outbox(at.journal)
        await asyncio.sleep(1.1)
        assert await at.once() == 1
        assert before <= outbox(at.journal), "a sink that is configured is waited for"
        at.configure(sinks={"left": sinks["left"]})
        await asyncio.sleep(1.1)
        assert await at.once() == 0
        assert not before & outbox(at.journal)


def outbox(path: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(path)) as db:
        return {name for (name,) in db.execute("SELECT id FROM outbox")}
