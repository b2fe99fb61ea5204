"""A full disk and a read-only directory: events go out from memory, and the problem is reported."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.bridge_process import Stage, file_sink, stage
from support.judge import judge, told, transitions

NOBODY = 65534
PROBES = {"listen": None, "probes_listen": "127.0.0.1:0"}


async def readiness(at: Stage) -> tuple[int, str]:
    """The status of /readyz, and the reasons."""
    await at.until_said("http.listening")
    address = at.said("http.listening")[-1]["probes"]
    async with aiohttp.ClientSession() as http, http.get(f"http://{address}/readyz") as answer:
        return answer.status, await answer.text()


async def ready(at: Stage) -> None:
    async def is_ready() -> bool:
        return (await readiness(at))[0] == 200

    for _ in range(200):
        if await is_ready():
            return
        await at.polled(1)
    raise AssertionError(await readiness(at))


def recorded(path: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return {name for (name,) in db.execute("SELECT id FROM outbox")}


def a_crowd(at: Stage, name: str, count: int = 40) -> None:
    """More than fits into what the journal has."""
    for number in range(count):
        at.world.create(
            name=f"{name}-{number}", type="Freeze", notice="1h", started_for=None,
            description=f"{name} " * 100,
        )  # fmt: skip


async def everywhere(at: Stage, count: int) -> None:
    def are_there() -> bool:
        return all(len(told(path, "scheduled")) == count for path in at.files)

    await at.until(lambda: len(at.files) == 2 and are_there(), f"{count} events in both files")


async def go_through_a_full_disk(
    at: Stage, fill: Callable[[], object], free: Callable[[], None], **faults: str
) -> None:
    a_crowd(at, "before", 3)
    await at.start(faults=faults or None)
    await everywhere(at, 3)
    await ready(at)
    fill()
    a_crowd(at, "while")
    await at.until_said("journal.unwritable")
    await everywhere(at, 43)
    status, why = await readiness(at)
    assert status == 503
    assert "cannot be written" in why
    for number in range(20):
        at.world.cancel(f"while-{number}")
    at.world.start("before-0")
    await at.until(lambda: told(at.files[1], "started"), "what started meanwhile")
    free()
    await at.until_said("journal.recovered")
    await ready(at)
    assert {each["id"] for each in transitions(at.files[0])} <= recorded(at.journal)
    at.world.complete("before-0")
    await at.until(lambda: told(at.files[1], "completed"), "what came afterward")
    await at.polled(2)
    assert await at.stop() == 0
    assert judge(at.simulator.truth, at.shown, at.files) == []


async def test_a_full_disk_is_survived_in_memory_and_recovered(tmp_path: Path):
    with small_disk(tmp_path / "disk") as disk:
        async with stage(tmp_path, quick=True, state_dir=str(disk), http=PROBES) as at:
            ballast = disk / "ballast"

            def fill() -> None:
                with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                    while True:
                        file.write(bytes(4096))

            await go_through_a_full_disk(at, fill, ballast.unlink)


@contextlib.contextmanager
def small_disk(path: Path) -> Generator[Path]:
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.call(mount):
        pytest.skip("this machine lets us mount nothing; the page limit proves the same")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


async def test_a_page_limit_is_survived_in_memory_and_recovered(tmp_path: Path):
    limit = tmp_path / "limit"
    async with stage(tmp_path, quick=True, http=PROBES) as at:
        await go_through_a_full_disk(
            at, lambda: limit.write_text("1"), limit.unlink, pages=str(limit)
        )


async def test_a_kill_while_the_disk_is_full_repeats_under_the_same_ids(tmp_path: Path):
    limit = tmp_path / "limit"
    async with stage(tmp_path, quick=True) as at:
        a_crowd(at, "before", 3)
        await at.start(faults={"pages": str(limit)})
        await everywhere(at, 3)
        limit.write_text("1")
        a_crowd(at, "while")
        await everywhere(at, 43)
        await at.kill()
        limit.unlink()
        await at.start()
        await at.polled(3)
        assert await at.stop() == 0
        for path in at.files:
            assert len(told(path, "scheduled")) == 43
            assert len(transitions(path)) > 43
            assert not told(path, "completed", "canceled")


@contextlib.asynccontextmanager
async def unwritable(**config: Any) -> AsyncGenerator[tuple[Stage, dict[str, int]]]:
    """A state directory that the bridge's user cannot write, and files that it can."""
    folder = Path(tempfile.mkdtemp(prefix="seb-"))
    root = os.geteuid() == 0
    try:
        folder.chmod(0o755)
        state, out = folder / "state", folder / "out"
        out.mkdir()
        state.mkdir(mode=0o500 if not root else 0o755)
        if root:
            os.chown(out, NOBODY, NOBODY)
        sinks = {name: file_sink(out, name) for name in ("left", "right")}
        async with stage(folder, quick=True, sinks=sinks, **config) as at:
            yield at, {"user": NOBODY} if root else {}
    finally:
        (folder / "state").chmod(0o755)
        shutil.rmtree(folder)


async def test_a_read_only_directory_is_reported_and_events_go_out_from_memory():
    async with unwritable(http=PROBES) as (at, faults):
        at.world.create(name="kept", type="Reboot", notice="1h", started_for=None)
        await at.start(faults=faults)
        await everywhere(at, 1)
        assert at.said("journal.unwritable")
        status, why = await readiness(at)
        assert status == 503
        assert "cannot be written" in why
        at.world.start("kept")
        await at.polled(2)
        at.world.complete("kept")
        await at.polled(2)
        assert await at.stop() == 0
        assert judge(at.simulator.truth, at.shown, at.files) == []
        assert not at.journal.exists()


async def test_a_journal_that_becomes_read_only_resumes_when_it_is_writable_again():
    async with unwritable() as (at, faults):
        if not faults:
            at.state_dir.chmod(0o755)
        at.world.create(name="kept", type="Reboot", notice="1h", started_for=None)
        await at.start()
        await everywhere(at, 1)
        assert await at.stop() == 0
        for path in at.files:
            path.chmod(0o666)
        if not faults:
            at.state_dir.chmod(0o500)
        await at.start(faults=faults)
        at.world.start("kept")
        await at.until(lambda: all(told(path, "started") for path in at.files), "the start")
        assert at.said("journal.unwritable")
        await at.kill()
        at.state_dir.chmod(0o755)
        at.world.complete("kept")
        await at.start()
        await at.polled(3)
        assert await at.stop() == 0
        for path in at.files:
            assert [len(told(path, kind)) for kind in ("scheduled", "started")] == [1, 1]
            assert len(told(path, "completed", "canceled")) == 1
