"""How soon the bridge asks and speaks, what it weighs, and how often it wakes, beside the least.

The least is a Python process that imports aiohttp and polls the same endpoint every second.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

BARE = """
import asyncio, sys
import aiohttp

async def main(url):
    async with aiohttp.ClientSession(headers={"Metadata": "true"}) as http:
        while True:
            async with http.get(url) as answer:
                print(await answer.json(), flush=True)
            await asyncio.sleep(1)

asyncio.run(main(sys.argv[1]))
"""
EVENTS = "/metadata/scheduledevents"
AIMS = {"first poll": 1.6, "first CloudEvent": 2.0, "resident memory": 1.5, "wakeups": 3.0}
PATIENCE = 60.0
SETTLED = 2.0


@dataclass(slots=True)
class Endpoint:
    """A metadata service with nothing to say, and when it was first asked."""

    bytecode: str
    url: str = ""
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    at: float = 0.0

    async def events(self, _: web.Request) -> web.Response:
        if not self.asked.is_set():
            self.at = time.perf_counter()
            self.asked.set()
        return web.json_response({"DocumentIncarnation": 1, "Events": []})

    async def instance(self, _: web.Request) -> web.Response:
        return web.json_response({"compute": {"name": "vm-0", "vmId": "bench"}})


@contextlib.asynccontextmanager
async def endpoint(bytecode: Path) -> AsyncGenerator[Endpoint]:
    made = Endpoint(str(bytecode))
    app = web.Application()
    app.router.add_get(EVENTS, made.events)
    app.router.add_get("/metadata/instance", made.instance)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        await runner.cleanup()


@dataclass(frozen=True, slots=True)
class Taken:
    """One run: seconds until the first poll and the first line, bytes, and wakeups a minute."""

    first_poll: float
    first_line: float
    memory: float
    wakeups: float


async def measure(command: Sequence[str], at: Endpoint, idle: float) -> Taken:
    """Start a process, see when it polls and speaks, and weigh it after a while of idleness."""
    at.asked.clear()
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment(at),
    )
    try:
        assert process.stdout
        async with asyncio.timeout(PATIENCE):
            await process.stdout.readline()
        spoke = time.perf_counter()
        await asyncio.sleep(SETTLED)
        before = switches(process.pid)
        await asyncio.sleep(idle)
        if process.returncode is not None:
            sys.exit(f"it did not go on: {' '.join(command)[:200]}")
        wakeups = (switches(process.pid) - before) * 60 / idle
        return Taken(at.at - began, spoke - began, resident(process.pid), wakeups)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def environment(at: Endpoint) -> dict[str, str]:
    """With bytecode, as what is installed has it; the warm-up round compiles it."""
    kept = {key: os.environ[key] for key in os.environ if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": at.bytecode}


def switches(pid: int) -> int:
    """How often any of its threads went to sleep, which is how often one woke."""
    texts = [task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/status")]
    return sum(int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0]) for text in texts)


def resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return int(found[1]) * 1024.0 if found else float("nan")


def commands(url: str, folder: Path) -> dict[str, list[str]]:
    config = folder / "config.yaml"
    settings = {
        "source": {"endpoint": url},
        "state_dir": str(folder / "state"),
        "http": {"listen": "127.0.0.1:0"},
    }
    config.write_text(json.dumps(settings))
    seb = str(Path(sys.executable).with_name("seb"))
    return {
        "bare": [sys.executable, "-c", BARE, f"{url}{EVENTS}?api-version=2020-07-01"],
        "bridge": [seb, "run", "-c", str(config)],
    }


async def compare(runs: int, idle: float) -> dict[str, list[Taken]]:
    """Alternate, so that what else the machine does burdens both; the first round is warm-up."""
    taken: dict[str, list[Taken]] = {"bare": [], "bridge": []}
    with tempfile.TemporaryDirectory() as folder:
        async with endpoint(Path(folder, "bytecode")) as at:
            chosen = commands(at.url, Path(folder))
            for command in chosen.values():
                await measure(command, at, 1.0)
            for _ in range(runs):
                for name, command in chosen.items():
                    taken[name].append(await measure(command, at, idle))
    return taken


def report(taken: dict[str, list[Taken]]) -> None:
    def median(name: str, what: str) -> float:
        return statistics.median(getattr(each, what) for each in taken[name])

    print(f"{'':18}{'bare':>12}{'bridge':>12}{'ratio':>8}{'aim':>8}")
    rows = (
        ("first poll", "first_poll", 1e3, "ms"),
        ("first CloudEvent", "first_line", 1e3, "ms"),
        ("resident memory", "memory", 2**-20, "MiB"),
        ("wakeups", "wakeups", 1, "/min"),
    )
    for title, what, factor, unit in rows:
        bare, bridge = median("bare", what), median("bridge", what)
        shown = [f"{value * factor:.0f} {unit}" for value in (bare, bridge)]
        ratio = f"{bridge / bare:.2f}x"
        print(f"{title:18}{shown[0]:>12}{shown[1]:>12}{ratio:>8}{AIMS[title]:>7}x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="of each, alternating (7)")
    parser.add_argument("--idle", type=float, default=5.0, help="seconds before weighing (5)")
    given = parser.parse_args()
    print(f"medians of {given.runs} runs, Python {sys.version.split()[0]}, {sys.platform}")
    report(asyncio.run(compare(given.runs, given.idle)))


if __name__ == "__main__":
    main()
