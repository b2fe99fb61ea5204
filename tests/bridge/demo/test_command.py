import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support.cloudevents import make
from support.log_tools import log_as_before

from bridge.cli import main
from bridge.demo import command as demo

SEB = str(Path(sys.executable).with_name("seb"))
TOLD = re.compile(r"^\d\d:\d\d:\d\d  (\w+) +(\w+) +[0-9A-F]{8}  vm-0")
GRANTED = re.compile(r"approval\.granted  (\w+)")
PLACE = re.compile(r"(configuration|faster) +(\S+)$", re.MULTILINE)
INVITED = re.compile(r"^  (?:export )?(http:|SEB_CONFIG=)(\S+)$", re.MULTILINE)
HEARD = re.compile(r"MQTT to plant-floor: Freeze [0-9A-F]{8} (\w+)")


@pytest.fixture(autouse=True)
def _log():
    with log_as_before():
        yield


async def open_console(link: str) -> dict[str, Any]:
    """Follow the link as a page does: the code in the fragment becomes a session."""
    base, _, code = f"http:{link}".partition("#code=")
    async with aiohttp.ClientSession() as http:
        async with http.get(base) as page:
            assert page.content_type == "text/html"
        async with http.post(f"{base}api/v1/session", json={"code": code}) as answer:
            assert answer.status == 201
            return dict((await answer.json())["caller"])


async def seb(config: str, *words: str) -> str:
    """A command in another terminal, after the line that the demo printed."""
    process = await asyncio.create_subprocess_exec(
        SEB, *words, stdout=asyncio.subprocess.PIPE, env={**os.environ, "SEB_CONFIG": config}
    )
    async with asyncio.timeout(30):
        out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


async def rehearse(config: str, azure: str) -> tuple[dict[str, Any], list[str]]:
    """The report of a drill, and the approvals that the simulated Azure has received by its end."""
    words = ("drill", "-c", config, "--type", "Reboot", "--notice", "60s", "--json")
    process = await asyncio.create_subprocess_exec(SEB, *words, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(30), aiohttp.ClientSession() as http:
        out, _ = await process.communicate()
        async with http.get(f"{azure}/control/approvals") as answer:
            told = await answer.json()
    return json.loads(out), [key for one in told for key in one["eventIds"]]


@pytest.mark.timeout(90)
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
async def test_the_loop_runs_on_one_machine_and_ctrl_c_ends_it():
    process = await asyncio.create_subprocess_exec(
        SEB, "demo", "--speed", "60",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    told: list[tuple[str, str]] = []
    places: dict[str, str] = {}
    granted: set[str] = set()
    heard: list[str] = []
    invited: dict[str, str] = {}
    try:
        async with asyncio.timeout(25):
            while ("completed", "Reboot") not in told:
                line = (await process.stdout.readline()).decode()
                assert line, (await process.stderr.read()).decode()
                places |= {found[1]: found[2] for found in PLACE.finditer(line)}
                granted |= set(GRANTED.findall(line))
                heard += HEARD.findall(line)
                invited |= {found[1]: found[2] for found in INVITED.finditer(line)}
                if found := TOLD.match(line):
                    told.append((found[1], found[2]))
        report, released = await rehearse(places["configuration"], places["faster"])
        caller = await open_console(invited["http:"])
        sinks = await seb(invited["SEB_CONFIG="], "sinks")
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(10):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    assert (caller["name"], caller["scopes"][-1]) == ("you", "operate")
    assert all(name in sinks for name in ("orders-bus", "plant-floor", "pager"))
    assert "Stopped in order" in out.decode()
    assert granted == {"Reboot", "Freeze"}, "approvals went round the loop, by Kafka and by MQTT"
    assert heard == ["scheduled", "started", "completed"]
    assert report["passed"], "a drill reached every sink, and its consumer approved in time"
    assert {one["outcome"] for one in report["sinks"]} == {"delivered"}
    assert len(released) == 2, "Azure was told of the two events of the script"
    assert report["eventId"] not in released, "and never of the drill"
    assert err == b""
    assert [what for what, kind in told if kind == "Reboot"] == [
        "scheduled",
        "updated",
        "started",
        "completed",
    ]


@pytest.mark.parametrize("speed", ["0", "0.5", "1001", "nan"])
def test_a_speed_out_of_range_is_a_usage_error(capsys, speed):
    assert main(["demo", "--speed", speed]) == 2
    assert "--speed must be from 1 to 1000" in capsys.readouterr().err


def sentence(**data: Any) -> str:
    return line_for(make(**data).envelope)


def line_for(envelope: dict[str, Any]) -> str:
    found = demo._sentence(envelope)
    assert found is not None
    return found


def test_a_cloudevent_is_one_readable_line():
    line = sentence(noticeSeconds=899.4)
    assert "scheduled   Reboot" in line
    assert "in 899 s" in line
    assert line.endswith("restarted as requested by authorized user.")


def test_what_has_no_notice_shows_none():
    assert " in " not in sentence(noticeSeconds=None, description=None)


def test_what_was_canceled_is_no_longer_announced():
    assert sentence(status="Canceled").endswith("no longer announced")


def test_what_was_moved_says_from_when_to_when():
    moved = {"from": "2026-11-15T18:29:47Z", "to": "2026-11-15T18:39:47Z"}
    assert "moved from" in sentence(changes={"notBefore": moved})
    never = {"from": None, "to": "2026-11-15T18:39:47Z"}
    assert "moved from" not in sentence(changes={"notBefore": never})


def test_cloudevents_about_the_bridge_are_left_out():
    envelope = make().envelope
    assert demo._sentence({**envelope, "data": {"action": "x"}}) is None


def test_the_outcome_of_an_approval_is_a_line_too():
    envelope = make().envelope
    data = {"eventType": "Reboot", "eventId": "AB12CD34-1", "approver": "orders", "reason": "done"}
    granted = {**envelope, "type": "azure.scheduledevents.approval.granted.v1", "data": data}
    assert line_for(granted).endswith("approval.granted  Reboot  AB12CD34  by orders: done")
