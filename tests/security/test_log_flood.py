"""When everything fails at once, the log has a line for each change, and none for each failure."""

import asyncio
import json
import re
from collections import Counter
from contextlib import suppress

import aiohttp
from support.bridge_process import Stage, announce, file_sink, stage
from support.ports import free_ports
from support.until import until

GARBAGE = (b"{", b"\xff\xfe", b'{"eventId": 7}', b"[]", b'{"eventId": "x", "decision": "maybe"}')
FLOOD, MORE = 30, 90
FAILED_POLLS = re.compile(r"^seb_poll_problems_total\{[^}]*\} (\d+)", re.MULTILINE)
FEW = 12
"""Lines that anything may add meanwhile, such as a state that changes once."""


def failing(at: Stage, closed: int) -> dict[str, object]:
    """Sinks that cannot write and cannot connect."""
    (at.folder / "taken.jsonl").mkdir()
    hooks = {
        f"hook-{n}": {"type": "webhook", "url": f"http://127.0.0.1:{closed}/x", "required": False}
        for n in range(3)
    }
    return {"taken": file_sink(at.folder, "taken"), **hooks}


async def pour(base: str, port: int, number: int) -> None:
    """Votes without a token and with a wrong one, and bytes that are not HTTP."""
    async with aiohttp.ClientSession() as session:
        for n in range(number):
            body = GARBAGE[n % len(GARBAGE)]
            for headers in ({}, {"Authorization": f"Bearer wrong-{n}"}):
                sent = {"Content-Type": "application/json", **headers}
                async with session.post(f"{base}/api/v1/approvals", data=body, headers=sent) as got:
                    assert got.status == 401
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"\x16\x03\x01 GET\r\n\r\n")
            with suppress(ConnectionError):
                await reader.readline()
            writer.close()


async def failed_polls(base: str) -> int:
    """As the metrics count them."""
    right = {"Authorization": "Bearer right"}
    async with aiohttp.request("GET", f"{base}/metrics", headers=right) as answer:
        return sum(map(int, FAILED_POLLS.findall(await answer.text())))


def events(at: Stage) -> Counter[str]:
    return Counter(json.loads(line)["event"] for line in at.output().splitlines())


async def test_the_log_grows_with_changes_and_not_with_failures(tmp_path):
    port, closed = free_ports(2)
    base = f"http://127.0.0.1:{port}"
    async with stage(tmp_path) as at:
        tokens = [{"name": "ops", "token": "right", "scopes": ["read", "approve"]}]
        allow = [{"approver": "ops", "token": "ops"}]
        at.configure(
            sinks=failing(at, closed),
            http={"listen": f"127.0.0.1:{port}", "tokens": tokens},
            approvals={"allow": allow},
            stop_grace="100ms",
        )
        announce(at, "e")
        await at.start()
        await at.until_said("http.listening")
        await at.until(lambda: len(at.said("sink.unavailable")) == 4, "all sinks to fail")
        at.world.fault("status", status=500)
        await until(lambda: some(failed_polls(base), 2), "failed polls")
        await pour(base, port, FLOOD)
        before, polls = events(at), await failed_polls(base)
        await pour(base, port, MORE)
        await until(lambda: some(failed_polls(base), polls + 2), "more failed polls")
        after = events(at)
        assert await at.stop() == 0
    assert (after - before).total() <= FEW, after - before
    assert after.total() <= 4 * FEW, after
    assert len(at.output()) <= 48 * 1024


async def some(counting, least: int) -> bool:
    return await counting >= least
