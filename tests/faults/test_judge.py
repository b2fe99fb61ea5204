"""A judge that accepts everything proves nothing: it must find each error."""

import json
from collections.abc import Callable
from pathlib import Path

from support.bridge_process import Stage, stage
from support.judge import PREFIX, judge

Lines = list[bytes]


async def a_true_story(folder: Path) -> Stage:
    async with stage(folder, quick=True) as at:
        at.world.create(name="kept", type="Reboot", notice="1h", started_for=None)
        at.world.create(name="dropped", type="Redeploy", notice="1h")
        await at.start()
        await at.polled(2)
        at.world.update("kept", description="Something else is written here")
        await at.polled(2)
        at.world.start("kept")
        await at.polled(2)
        at.world.cancel("dropped")
        at.world.complete("kept")
        await at.polled(3)
        assert await at.stop() == 0
    return at


def place(lines: Lines, kind: str) -> int:
    return next(n for n, body in enumerate(lines) if f"{PREFIX}{kind}.v1".encode() in body)


def without(kind: str) -> Callable[[Lines], Lines]:
    return lambda lines: [*lines[: (n := place(lines, kind))], *lines[n + 1 :]]


def repeated_late(lines: Lines) -> Lines:
    return [*lines, lines[place(lines, "scheduled")]]


def told_backwards(lines: Lines) -> Lines:
    return lines[::-1]


def changed(kind: str, **keys: str) -> Callable[[Lines], Lines]:
    def change(lines: Lines) -> Lines:
        n = place(lines, kind)
        return [*lines[:n], json.dumps(json.loads(lines[n]) | keys).encode(), *lines[n + 1 :]]

    return change


def instead(old: str, new: str) -> Callable[[Lines], Lines]:
    return lambda lines: [
        body.replace(f".{old}.v1".encode(), f".{new}.v1".encode()) for body in lines
    ]


WRONGS = {
    "scheduled missing": without("scheduled"),
    "updated missing": without("updated"),
    "started missing": without("started"),
    "completed missing": without("completed"),
    "canceled missing": without("canceled"),
    "repeated after something else": repeated_late,
    "told backwards": told_backwards,
    "another id": changed("started", id="61c5ef66-ec50-57a6-af29-e47e13a31a5b"),
    "before it happened": changed("started", time="2020-01-01T00:00:00Z"),
    "canceled for completed": instead("completed", "canceled"),
    "completed for canceled": instead("canceled", "completed"),
}


async def test_the_judge_accepts_a_correct_stream_and_finds_every_error(tmp_path: Path):
    at = await a_true_story(tmp_path)
    assert judge(at.simulator.truth, at.shown, at.files) == []
    true = {path: path.read_bytes() for path in at.files}
    for name, wrong in WRONGS.items():
        for both in (True, False):
            for path in at.files if both else at.files[1:]:
                told = wrong(true[path].splitlines())
                path.write_bytes(b"".join(body + b"\n" for body in told))
            assert judge(at.simulator.truth, at.shown, at.files), name
            for path, body in true.items():
                path.write_bytes(body)
