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
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from support.served_bridge import announce, bridge, config, end
from support.until import until
from support.voting_bridge import write_config
from support.world import ME, NOON, OTHER, published

from bridge.cli.client import Refused, Unreachable
from bridge.cli.commands import watch
from bridge.cli.commands.watch import View, Watch
from bridge.cli.event_line import Happening, is_own
from bridge.cli.shell import Ask
from bridge.cli.stream import Place, stream

FIRST = "602D9444-D2CD-49C7-8624-8643E7171297"
SECOND = "C7061BAC-AFDC-4513-B24B-AA5F13A16123"
SEB = str(Path(sys.executable).with_name("seb"))
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
async def watching(settings, screen, *, follow=False, **view):
    with redirect_stdout(screen):
        made = Watch(Ask(settings), View(**view), follow=follow)
        task = asyncio.create_task(made.run())
        try:
            yield made, task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def begun(watched):
    await until(lambda: watched._place.last is not None)


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
    view = View(as_json=True)
    view.pending(TOLD[0])
    view.show(TOLD[0])
    view.show(TOLD[1])
    assert capsys.readouterr().out.count("\n") == 2


async def test_own_is_what_names_this_vm_until_its_end(tmp_path, screen):
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
        "seb: The bridge has ended the stream; --follow waits for it to come back.\n"
    )


@pytest.mark.parametrize("heard", [False, True], ids=["before anything", "after something"])
async def test_to_follow_is_to_miss_nothing_across_a_restart(
    tmp_path, screen, capsys, quick, heard
):
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


async def test_a_bridge_that_is_away_is_told_once(tmp_path, screen, capsys, quick, monkeypatch):
    settings = config(tmp_path, listen=None)
    tries = []
    monkeypatch.setattr(watch, "stream", lambda *known: tries.append(1) or stream(*known))
    async with watching(settings, screen, follow=True, as_json=True):
        await until(lambda: len(tries) >= 3)
    assert capsys.readouterr().err.count("; waiting for it.\n") == 1
    with pytest.raises(Unreachable, match="No bridge is running here"):
        await Watch(Ask(settings), View()).run()


async def test_whoever_may_not_look_is_told_so_even_if_they_follow(tmp_path, screen):
    async with bridge(config(tmp_path, tokens=["secret"])) as made:
        settings = config(tmp_path / "elsewhere", listen=str(made.served.http))
        with pytest.raises(Refused, match="This needs a token"):
            await Watch(Ask(settings), View(), follow=True).run()


@asynccontextmanager
async def impostor(body, kind="text/event-stream"):
    """Something else at the bridge's address."""

    async def handle(_):
        return web.Response(body=body, content_type=kind)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield site.port
    finally:
        await runner.cleanup()


async def everything(settings, place):
    async with stream(Ask(settings), place) as news:
        return [one async for one in news]


STRANGE = {
    "a page": (b"<html>", "text/html", "is not a bridge"),
    "no JSON": (b"id: 1\ndata: ?\n\n", "text/event-stream", "not a CloudEvent"),
    "no data": (b'id: 1\ndata: {"id": "1"}\n\n', "text/event-stream", "not a CloudEvent"),
    "an endless line": (b"data: " + b"x" * 2**21, "text/event-stream", "line of more than 1"),
    "endless lines": (b"data: xxxx\n" * 2**18, "text/event-stream", "CloudEvent of more than 1"),
}


@pytest.mark.parametrize(("body", "kind", "sentence"), STRANGE.values(), ids=STRANGE)
async def test_what_is_no_stream_of_a_bridge_is_not_taken_for_one(tmp_path, body, kind, sentence):
    async with impostor(body, kind) as port:
        with pytest.raises((Refused, Unreachable), match=sentence):
            await everything(config(tmp_path, listen=f"127.0.0.1:{port}"), Place())


async def test_a_place_moves_with_every_id_and_a_torn_end_is_nothing(tmp_path):
    text = b'retry: 1\nid: a\n\n:\n\nid: b\ndata: {"data":\ndata: {}}\n\nid: c\ndata: {"data"'
    async with impostor(text) as port:
        place = Place()
        found = await everything(config(tmp_path, listen=f"127.0.0.1:{port}"), place)
    assert found == [{"data": {}}]
    assert place.last == "b"


# --- the lines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cloudevent", TOLD, ids=lambda one: one["type"].split(".", 2)[2])
def test_every_cloudevent_is_one_aligned_line(cloudevent):
    line = Happening(cloudevent).line(NOON)
    assert line.count("\n") == 1
    assert line[:-1].isprintable()
    assert line[11:].startswith(cloudevent["type"][len("azure.scheduledevents.") : -len(".v1")])
    if (event_id := cloudevent["data"].get("eventId")) is not None:
        assert line[41:].startswith(event_id)
    assert is_own(cloudevent) is ("eventId" in cloudevent["data"])


def test_the_line_says_what_matters():
    told = {one["type"].split(".", 2)[2][:-3]: Happening(one).line(NOON) for one in TOLD}
    assert "FrontEnd_IN_0, BackEnd_IN_0; not before 12:15:00Z (in 15m)" in told["scheduled"]
    assert "changed: notBefore" in told["updated"]
    assert "no longer announced" in told["canceled"]
    assert "approve by orders-service; for FrontEnd_IN_0; drained" in told["approval.recorded"]
    assert "missing: BackEnd_IN_0" in told["approval.recorded"]
    assert "server-error" in told["source.degraded"]
    assert "1 pending" in told["source.snapshot"]
    assert "dead-letter.dropped; ops" in told["bridge.audited"]


def test_who_is_missing_is_said_once_and_who_holds_and_that_it_is_no_real_vote_too():
    told = {one["type"].split(".", 2)[2][:-3]: one for one in TOLD}
    assert Happening(told["approval.due"]).line(NOON).count("missing: ") == 1
    recorded = told["approval.recorded"]
    votes = {"have": [ME], "missing": [], "holds": [f"billing@{OTHER}"]}
    held = {**recorded, "data": {**recorded["data"], "votes": votes, "dryRun": True}}
    assert Happening(held).line(NOON).endswith(f"held by: billing@{OTHER}; dry run\n")
    none = {**recorded, "data": {**recorded["data"], "votes": {**votes, "missing": ["any"]}}}
    assert "; nobody has approved; held by: " in Happening(none).line(NOON)


def test_another_day_has_its_date():
    [one] = [one for one in TOLD if one["type"].endswith("due.v1")]
    assert Happening(one).line(NOON + timedelta(days=1)).startswith("2026-11-15 12:10:00Z  ")


def test_colours_are_for_terminals_and_go_by_severity():
    painted = {one["type"].split(".", 2)[2][:-3]: Happening(one).line(NOON, colour=True)
               for one in TOLD}  # fmt: skip
    assert painted["source.degraded"].startswith("\x1b[31m")
    assert painted["approval.due"].startswith("\x1b[33m")
    assert painted["approval.granted"].startswith("\x1b[32m")
    assert painted["approval.due"].endswith("\x1b[0m\n")
    assert "\x1b" not in painted["source.snapshot"]


def test_what_comes_from_azure_cannot_play_with_the_terminal():
    evil = {**TOLD[0], "data": {**TOLD[0]["data"], "description": "\x1b[2J\u202eevil"}}
    assert Happening(evil).line(NOON)[:-1].isprintable()


# --- the process ---------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX")
async def test_ctrl_c_and_a_reader_that_leaves_end_it_quietly(tmp_path):
    file = write_config(tmp_path / "seb.yaml", state_dir=str(tmp_path), http={"listen": None})
    async with bridge(config(tmp_path)) as made:
        await announce(made.journal, FIRST)
        command = [SEB, "watch", "--json", "-c", str(file)]
        pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}
        first = await asyncio.create_subprocess_exec(*command, **pipes)
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
    args = parser.parse_args(["--json", "--own", "--follow", "-c", str(tmp_path / "none.yaml")])
    assert (args.json, args.own, args.follow) == (True, True, True)
    assert watch.run(args) == 78
