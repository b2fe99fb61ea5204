"""`seb watch`, at a bridge that is really served, and across its restart."""

import argparse
import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from support.located import located
from support.served_bridge import announce, bridge, config, end
from support.until import until
from support.voting_bridge import write_config
from support.world import OTHER, published

from bridge.cli.client import RequestRefused, Unreachable
from bridge.cli.commands import watch
from bridge.cli.commands.watch import Lines, Watch, WatchView
from bridge.cli.shell import Ask
from bridge.cli.watching.stream import StreamAddress, stream

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"
SECOND = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"
SEB = str(Path(sys.executable).with_name("seb"))
REFUSED = published()["azure.scheduledevents.approval.refused.v1"]
TOLD = [json.loads(one.body) for one in published().values()]


class Screen(io.StringIO):
    """What a command prints, to be waited for."""

    def lines(self):
        return self.getvalue().splitlines()

    async def until(self, count):
        await until(lambda: len(self.lines()) >= count)
        return self.lines()


@pytest.fixture
def screen():
    return Screen()


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(watch, "AGAIN", 0.02)


@asynccontextmanager
async def watching(settings, screen, *, follow=False, place=None, as_json=False, own=False):
    with redirect_stdout(screen):
        place = place or StreamAddress()
        view = WatchView(Lines(as_json=as_json), own=own)
        made = Watch(Ask(located(settings)), view, follow=follow, place=place)
        task = asyncio.create_task(made.run())
        try:
            yield made, task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def begun(watched):
    await until(lambda: watched.place.last is not None)


def ids(screen):
    return [json.loads(line)["id"] for line in screen.lines()]


async def test_what_is_pending_comes_first_and_then_what_happens(tmp_path, screen):
    settings = config(tmp_path)
    async with bridge(settings) as made:
        await announce(made.journal, "OVER")
        await end(made.journal, "OVER")
        [pending] = await announce(made.journal, FIRST)
        async with watching(settings, screen, as_json=True):
            await screen.until(1)
            [news] = await announce(made.journal, SECOND)
            await screen.until(2)
            gone = await end(made.journal, FIRST)
            await screen.until(4)
    assert ids(screen) == [pending.id, news.id, *(one.id for one in gone)]
    assert json.loads(screen.lines()[0])["type"] == "azure.scheduledevents.scheduled.v1"


def test_what_was_shown_as_pending_is_not_shown_again(capsys):
    view = WatchView(Lines(as_json=True))
    view.pending(TOLD[0])
    view.show(TOLD[0])
    view.show(TOLD[1])
    assert capsys.readouterr().out.count("\n") == 2


async def test_own_events_are_followed_to_their_end(tmp_path, screen):
    settings = config(tmp_path)
    async with bridge(settings) as made:
        await announce(made.journal, FIRST, resources=(OTHER,))
        async with watching(settings, screen, as_json=True, own=True) as (watched, _):
            await begun(watched)
            await announce(made.journal, SECOND)
            await screen.until(1)
            await announce(made.journal, SECOND, resources=(OTHER,))
            await end(made.journal, FIRST)
            await end(made.journal, SECOND)
            await screen.until(4)
    told = [json.loads(line) for line in screen.lines()]
    assert {one["subject"] for one in told} == {SECOND}
    assert [one["type"].split(".")[2] for one in told] == [
        "scheduled", "updated", "started", "completed",
    ]  # fmt: skip


async def test_a_bridge_that_stops_ends_the_view(tmp_path, screen, capsys):
    settings = config(tmp_path)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(bridge(settings))
        async with watching(settings, screen) as (watched, task):
            await begun(watched)
            await stack.aclose()
            assert await asyncio.wait_for(task, 10) == 1
    assert capsys.readouterr().err == (
        "seb: The bridge ended the stream; with --follow, seb watch waits for it to come back.\n"
    )


@pytest.mark.parametrize("heard", [False, True], ids=["before anything", "after something"])
async def test_follow_misses_nothing_across_a_restart(tmp_path, screen, capsys, quick, heard):
    settings = config(tmp_path)
    async with bridge(settings) as made:
        await announce(made.journal, "OLD")
        await end(made.journal, "OLD")
    async with watching(settings, screen, follow=True, as_json=True) as (watched, _):
        expected = []
        async with bridge(settings) as made:
            await begun(watched)
            if heard:
                expected += await announce(made.journal, FIRST)
                await screen.until(1)
        await until(lambda: "ended the stream; waiting for it" in capsys.readouterr().err)
        async with bridge(settings) as made:
            expected += await announce(made.journal, SECOND)
            expected += await end(made.journal, SECOND)
            await screen.until(len(expected))
    assert ids(screen) == [one.id for one in expected]


async def test_a_missing_bridge_is_reported_once(tmp_path, screen, capsys, quick, monkeypatch):
    settings = config(tmp_path, listen=None)
    tries = []

    def tried(*known: Any) -> Any:
        tries.append(known)
        return stream(*known)

    monkeypatch.setattr(watch, "stream", tried)
    async with watching(settings, screen, follow=True, as_json=True):
        await until(lambda: len(tries) >= 3)
    assert capsys.readouterr().err.count("; waiting for it.\n") == 1
    with pytest.raises(Unreachable, match="No bridge is running here"):
        await Watch(Ask(located(settings)), WatchView()).run()


async def test_a_caller_without_permission_gets_an_error_even_with_follow(tmp_path, screen):
    async with bridge(config(tmp_path, tokens=["secret"])) as made:
        settings = config(tmp_path / "elsewhere", listen=str(made.served.http))
        with pytest.raises(RequestRefused, match="This needs a token"):
            await Watch(Ask(located(settings)), WatchView(), follow=True).run()


@pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX")
async def test_ctrl_c_and_a_reader_that_leaves_end_it_quietly(tmp_path):
    file = write_config(tmp_path / "seb.yaml", state_dir=str(tmp_path), http={"listen": None})
    async with bridge(config(tmp_path)) as made:
        await announce(made.journal, FIRST)
        command = [SEB, "watch", "--json", "-c", str(file)]
        first = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        assert first.stdout is not None
        read, write = os.pipe()
        second = await asyncio.create_subprocess_exec(
            *command, stdout=write, stderr=subprocess.PIPE
        )
        os.close(write)
        try:
            async with asyncio.timeout(25):
                assert json.loads(await first.stdout.readline())["subject"] == FIRST
                first.send_signal(signal.SIGINT)
                assert (await first.communicate(), first.returncode) == ((b"", b""), 130)
                assert json.loads(await asyncio.to_thread(os.read, read, 2**16))["subject"] == FIRST
                os.close(read)
                await announce(made.journal, SECOND)
                assert ((await second.communicate())[1], second.returncode) == (b"", 1)
        finally:
            for process in (first, second):
                if process.returncode is None:
                    process.kill()


def test_the_options_are_those_of_the_contract(tmp_path):
    parser = argparse.ArgumentParser()
    watch.add_arguments(parser)
    words = ["--json", "--own", "--follow", "--strays", "-c", str(tmp_path / "none.yaml")]
    args = parser.parse_args(words)
    assert (args.json, args.own, args.follow, args.strays) == (True, True, True, True)
    assert watch.run(args) == 78


async def test_strays_are_shown_as_they_come_even_with_own(tmp_path, screen):
    async with bridge(config(tmp_path)) as made:
        settings, place = made.runtime.config, StreamAddress(strays=True)
        async with watching(settings, screen, place=place, own=True) as (watched, _):
            await begun(watched)
            made.runtime.status.refusals.add(REFUSED, stray=True)
            made.journal.announce()
            [line] = await screen.until(1)
    assert "  approval.refused " in line
    assert "; STRAY; " in f"; {line.split('  ')[-1]}"


async def test_strays_are_left_out_unless_asked_for(tmp_path, screen):
    async with (
        bridge(config(tmp_path)) as made,
        watching(made.runtime.config, screen, as_json=True) as (watched, _),
    ):
        await begun(watched)
        made.runtime.status.refusals.add(REFUSED, stray=True)
        await announce(made.journal, FIRST)
        [line] = await screen.until(1)
    assert json.loads(line)["subject"] == FIRST
