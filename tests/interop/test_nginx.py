"""Behind nginx, as docs/behind-a-proxy.md says, below a path: the API, a browser's request, commands and the stream."""

import re
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp
import pytest
from support import foreign
from support.bridge_process import Stage, announce, stage
from support.debian import tool
from support.foreign import Json
from support.foreign_events import about, approved, vote
from support.ports import free_ports
from support.until import until

pytestmark = pytest.mark.timeout(120)
GROUP = "HTTP"
PAGE = Path(__file__).parents[2] / "docs" / "behind-a-proxy.md"
TOKEN = "the-token"
HOST = "bridge.test"
EVENTSOURCE = ("npm eventsource", foreign.npm_version("eventsource"))


def recipe() -> str:
    """The location that the page recommends."""
    found = re.search(r"```nginx\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def configuration(folder: Path, port: int, bridge: int) -> str:
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind}; "
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    location = recipe().replace("127.0.0.1:17245", f"127.0.0.1:{bridge}")
    return (
        f"daemon off; master_process off; pid {folder}/pid; error_log stderr;\n"
        f"events {{}}\nhttp {{ access_log off; {temporary}\n"
        f"server {{ listen 127.0.0.1:{port}; server_name {HOST};\n{location} }} }}\n"
    )


@asynccontextmanager
async def nginx(folder: Path, bridge: int) -> AsyncIterator[int]:
    port = free_ports(1)[0]
    folder.mkdir()
    (folder / "nginx.conf").write_text(configuration(folder, port, bridge))
    command = [
        str(tool("nginx", "nginx-light")),
        "-c",
        str(folder / "nginx.conf"),
        "-p",
        str(folder),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        await until(lambda: _listens(port), "nginx", (folder / "log").read_text)
        yield port
    finally:
        process.kill()
        process.wait()


async def _listens(port: int) -> bool:
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/"):
            return True
    except aiohttp.ClientError:
        return False


def version() -> str:
    command = [str(tool("nginx", "nginx-light")), "-v"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return said.strip().rpartition("/")[2]


@asynccontextmanager
async def behind_nginx(folder: Path) -> AsyncIterator[tuple[Stage, str]]:
    port = free_ports(1)[0]
    http = {
        "listen": f"127.0.0.1:{port}",
        "tokens": [{"name": "orders", "token": TOKEN, "scopes": ["read", "approve", "operate"]}],
        "public_url": f"http://{HOST}/seb",
        "trusted_proxies": ["127.0.0.1"],
        "insecure": True,
    }
    async with nginx(folder / "nginx", port) as proxy, stage(folder, http=http) as at:
        await at.start()
        await at.until_said("http.listening")
        yield at, f"http://127.0.0.1:{proxy}/seb"


def audits(at: Stage) -> list[str]:
    with closing(sqlite3.connect(f"file:{at.journal}?mode=ro", uri=True)) as db:
        return [
            body.decode()
            for (body,) in db.execute("SELECT body FROM outbox WHERE type LIKE '%audited%'")
        ]


async def test_the_api_works_below_a_path_and_the_caller_is_known(tmp_path: Path, proves):
    proves(GROUP, "nginx", version(), "serves the API below a path")
    browser = {
        "Host": HOST,
        "Origin": f"http://{HOST}",
        "Authorization": f"Bearer {TOKEN}",
        "X-Forwarded-For": "203.0.113.7",
    }
    async with behind_nginx(tmp_path) as (at, url), aiohttp.ClientSession() as session:
        event = announce(at, "reboot", started_for=None)
        await at.polled(3)
        async with session.get(f"{url}/api/v1/events", headers=browser) as answer:
            assert answer.status == 200, await answer.text()
        for name, wrong, status in (
            ("Origin", "http://evil.test", 403),
            ("Authorization", "Bearer x", 401),
        ):
            refused = {**browser, name: wrong}
            async with session.post(f"{url}/api/v1/approvals", headers=refused, json={}) as answer:
                assert answer.status == status
        given = f"{url}/api/v1/approvals"
        body = vote(event, approver="orders")
        json_type = {"Content-Type": "application/json"}
        async with session.post(given, headers={**browser, **json_type}, data=body) as answer:
            assert answer.status == 202, await answer.text()
        await approved(at, event)
        async with session.post(f"{url}/api/v1/sinks/left/replay", headers=browser) as answer:
            assert answer.status == 202, await answer.text()
        # nginx adds the address of its caller, which is trusted here, so the one before counts.
        assert '"address": "203.0.113.7"' in audits(at)[-1]
        command = [str(Path(sys.executable).with_name("seb")), "events", "--json", "--url", url]
        done = subprocess.run(
            [*command, "--token", TOKEN], capture_output=True, text=True, check=False
        )
        assert event in done.stdout, done.stderr
        assert await at.stop() == 0


@pytest.mark.parametrize("through", ["nginx", "directly"])
async def test_eventsource_reads_the_stream_as_it_happens_and_resumes(
    tmp_path: Path, through: str, proves
):
    way = "through nginx" if through == "nginx" else "directly"
    proves(GROUP, *EVENTSOURCE, f"reads the stream {way}, and resumes")
    async with behind_nginx(tmp_path) as (at, url):
        base = url if through == "nginx" else f"http://{at.config['http']['listen']}"
        stream = f"{base}/api/v1/stream"
        async with foreign.running("JavaScript", "stream", stream, TOKEN, "99") as reader:
            opening = await reader.until(lambda said: "named" in said)
            assert (opening["data"], bool(opening["id"])) == ("{}", True)
            first = announce(at, "first")
            one = await reader.until(_told(first, "scheduled"))
        second = announce(at, "second")
        await at.polled(3)
        async with foreign.running(
            "JavaScript", "stream", stream, TOKEN, "99", one["id"]
        ) as reader:
            two = await reader.until(
                lambda said: "event" in said and _told(second, "scheduled")(said)
            )
        seen = [said["id"] for said in reader.lines if "event" in said]
        assert one["id"] not in seen
        assert two["id"] in seen
        assert await at.stop() == 0


def _told(event: str, kind: str):
    wanted = about(event, kind)

    def told(said: Json) -> bool:
        return "event" in said and wanted(said["event"])

    return told
