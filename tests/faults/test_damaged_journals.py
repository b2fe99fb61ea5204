"""Journals that cannot be trusted: torn, cut, another VM's, a newer version's."""

import asyncio
import random
import shutil
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bridge_process import Stage, stage
from support.judge import kind, lines, told

from bridge.simulator import VM, Scenario

PAGE = 4096
AT_ONCE = 4
"""How many bridges see torn pages in parallel."""


async def with_something_pending(at: Stage) -> None:
    """A journal that holds an event, with nothing left to deliver and no companions."""
    at.world.create(name="kept", type="Reboot", notice="1h", started_for=None)
    assert await at.once() == 0
    assert [kind(each) for each in told(at.files[0], "scheduled")] == ["scheduled"]


def set_aside(at: Stage, reason: str) -> list[Path]:
    found = at.state_dir.glob(f"journal.db.{reason}-*")
    return [path for path in found if not path.name.endswith(("-wal", "-shm"))]


def torn_page(path: Path) -> None:
    body = bytearray(path.read_bytes())
    middle = len(body) // PAGE // 2 * PAGE
    body[middle : middle + PAGE] = random.Random(1).randbytes(PAGE)
    path.write_bytes(body)


def half_of_it(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 100])


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def text(path: Path) -> None:
    path.write_text("This is not a database, whatever its name says.\n" * 100)


@pytest.mark.parametrize("damage", [torn_page, half_of_it, zeros, text])
async def test_a_corrupt_journal_is_set_aside_and_pending_events_are_published_again(
    tmp_path: Path, damage: Callable[[Path], None]
):
    async with stage(tmp_path, quick=True) as at:
        await with_something_pending(at)
        damage(at.journal)
        damaged = at.journal.read_bytes()
        assert await at.once() == 0
        assert [path.read_bytes() for path in set_aside(at, "corrupt")] == [damaged]
        assert len(at.said("journal.set_aside")) == 1
        for path in at.files:
            again = [each["id"] for each in lines(path) if kind(each) == "scheduled"]
            assert len(again) == 2
            assert len(set(again)) == 1
            assert told(path, "source.snapshot")[-1]["data"]["journal"] == "quarantined"
            assert [e["data"]["action"] for e in told(path, "bridge.audited")] == [
                "journal.set-aside"
            ]


async def test_the_bridge_survives_any_torn_page(tmp_path: Path):
    async with asyncio.TaskGroup() as side_by_side:
        for first in range(AT_ONCE):
            side_by_side.create_task(survive_torn_pages(tmp_path / f"{first}", first))


async def survive_torn_pages(folder: Path, first: int) -> None:
    """One page after another, of those that this bridge is to see torn."""
    async with stage(folder, quick=True) as at:
        await with_something_pending(at)
        whole = at.journal.read_bytes()
        at.world.start("kept")
        for number in range(first, len(whole) // PAGE, AT_ONCE):
            torn = bytearray(whole)
            half = number * PAGE + PAGE // 2
            torn[half : half + PAGE // 2] = random.Random(number).randbytes(PAGE // 2)
            before = [len(told(path, "started")) for path in at.files]
            shutil.rmtree(at.state_dir)
            at.state_dir.mkdir()
            at.journal.write_bytes(torn)
            for path in at.files:
                path.unlink()
            assert await at.once() == 0, f"page {number + 1}: {at.output()}"
            after = [len(told(path, "started")) for path in at.files]
            assert after == [1, 1], f"page {number + 1}: {before}, {at.output()}"


async def test_a_journal_that_becomes_corrupt_while_running_is_set_aside(tmp_path: Path):
    async with stage(tmp_path, quick=True) as at:
        at.world.create(name="kept", type="Reboot", notice="1h", started_for=None)
        await at.start()
        await at.until(lambda: len(at.files) == 2 and told(at.files[0], "scheduled"), "a start")
        at.world.start("kept")
        await at.until(lambda: all(told(path, "started") for path in at.files), "the event's start")
        checkpoint(at.journal)
        with at.journal.open("r+b") as file:
            file.seek(PAGE)
            file.write(random.Random(1).randbytes(at.journal.stat().st_size - PAGE))
        at.world.create(name="late", type="Freeze", notice="1h")
        await at.until_said("journal.set_aside")
        await at.until(lambda: len(told(at.files[1], "scheduled")) == 2, "the other event")
        await at.polled(2)
        assert await at.stop() == 0
        assert len(set_aside(at, "corrupt")) == 1
        for path in at.files:
            starts = [each["id"] for each in lines(path) if kind(each) == "started"]
            assert len(starts) == 2, "said again after the journal was lost"
            assert len(set(starts)) == 1, "under the same id"
            assert not told(path, "completed", "canceled")


def checkpoint(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


async def test_another_vms_journal_is_set_aside_and_its_events_are_ignored(tmp_path: Path):
    async with stage(tmp_path / "old", quick=True) as old:
        await with_something_pending(old)
        (image,) = old.files[0].parent.glob("state")
    async with stage(tmp_path / "new", Scenario(vms=[VM(name="vm-7")]), quick=True) as at:
        shutil.copytree(image, at.state_dir)
        at.world.create(name="mine", type="Freeze", notice="1h")
        assert await at.once() == 0
        assert len(set_aside(at, "foreign")) == 1
        for path in at.files:
            assert [each["data"]["observer"]["vm"] for each in told(path, "scheduled")] == ["vm-7"]
            assert not told(path, "completed", "canceled")
            assert told(path, "source.snapshot")[-1]["data"]["journal"] == "quarantined"
        assert await at.once() == 0
        assert len(set_aside(at, "foreign")) == 1, "it is ours now"


@pytest.mark.parametrize("companion", [False, True], ids=["alone", "with a write-ahead log"])
async def test_a_newer_journal_is_left_alone_and_the_bridge_refuses_to_start(
    tmp_path: Path, companion: bool
):
    async with stage(tmp_path, quick=True) as at:
        await with_something_pending(at)
        newer = sqlite3.connect(at.journal)
        newer.execute("PRAGMA user_version = 99")
        copies = {path: path.read_bytes() for path in at.state_dir.glob("journal.db*")}
        newer.close()
        if companion:
            for path, body in copies.items():
                path.write_bytes(body)
        before = content(at.state_dir)
        assert ("journal.db-wal" in before) is companion
        assert await at.once() == 1
        assert "newer version of the bridge (journal version 99" in at.output()
        assert "Traceback" not in at.output()
        assert content(at.state_dir) == before


async def newer(at: Stage) -> dict[str, bytes]:
    """A journal of a later version, with an undelivered row that only its log has."""
    await with_something_pending(at)
    db = sqlite3.connect(at.journal, isolation_level=None)
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.execute("PRAGMA user_version = 99")
    db.execute("UPDATE sink SET low = 0")
    files = content(at.state_dir)
    db.close()
    for name, body in files.items():
        (at.state_dir / name).write_bytes(body)
    return files


def restored(folder: Path, kept: Path) -> dict[str, bytes]:
    """What an operator has who moves a journal that was set aside back to its place."""
    folder.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(kept.with_name(kept.name + suffix), folder / f"journal.db{suffix}")
    return content(folder)


async def test_a_newer_journal_is_set_aside_to_the_byte_if_you_say_so(tmp_path: Path):
    async with stage(tmp_path, quick=True, journal={"newer": "set-aside"}) as at:
        before = await newer(at)
        assert await at.once() == 0
        [kept] = set_aside(at, "newer")
        assert restored(tmp_path / "back", kept) == before
        assert len(at.said("journal.set_aside")) == 1
        for path in at.files:
            again = [each["id"] for each in lines(path) if kind(each) == "scheduled"]
            assert (len(again), len(set(again))) == (2, 1)
            [audit] = told(path, "bridge.audited")
            assert "newer version of the bridge" in audit["data"]["detail"]["file"]
        assert await at.once() == 0
        assert set_aside(at, "newer") == [kept], "the new one is ours"


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5])
async def test_a_kill_while_a_newer_journal_is_set_aside_loses_no_byte_of_it(
    tmp_path: Path, step: int
):
    async with stage(tmp_path, quick=True, journal={"newer": "set-aside"}) as at:
        before = await newer(at)
        assert await at.once(around_set_aside=step) == -signal.SIGKILL
        assert await at.once() == 0
        [kept] = set_aside(at, "newer")
        assert restored(tmp_path / "back", kept) == before
        assert len(list(at.state_dir.glob("journal.db.*-wal"))) == 1
        for path in at.files:
            assert len({each["id"] for each in lines(path) if kind(each) == "scheduled"}) == 1


def content(folder: Path) -> dict[str, bytes]:
    """All files that matter: an empty log is nothing, and -shm is an index of the log."""
    found = [path for path in folder.glob("journal.db*") if not path.name.endswith("-shm")]
    return {path.name: path.read_bytes() for path in found if path.stat().st_size}


async def test_the_name_of_the_vm_is_remembered_when_instance_metadata_is_silent(tmp_path: Path):
    async with stage(tmp_path, quick=True) as at:
        await with_something_pending(at)
        at.world.create(name="theirs", type="Freeze", notice="1h", resources=["vm-1"])
        at.world.fault("status", status=500, paths=["instance"])
        assert await at.once() == 0
        assert len(told(at.files[0], "scheduled")) == 1
