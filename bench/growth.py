"""Whether the bridge grows with what it has carried: its memory after many transitions.

Each poll shows a hundred new scheduled events, and the hundred before them are gone.
"""

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aiohttp import web
from startup import EVENTS, resident

AIM = 1.1
AT_ONCE = 100
PATIENCE = 300.0


@dataclass(slots=True)
class Endpoint:
    """A metadata service that has something new to say each time."""

    url: str = ""
    asked: int = 0

    async def events(self, _: web.Request) -> web.Response:
        self.asked += 1
        soon = datetime.now(UTC) + timedelta(hours=1)
        new = [f"{self.asked:08X}-0000-0000-0000-{number:012X}" for number in range(AT_ONCE)]
        document = {
            "DocumentIncarnation": self.asked,
            "Events": [
                {
                    "EventId": key,
                    "EventType": "Freeze",
                    "ResourceType": "VirtualMachine",
                    "Resources": ["vm-0"],
                    "EventStatus": "Scheduled",
                    "NotBefore": f"{soon:%a, %d %b %Y %H:%M:%S} GMT",
                    "EventSource": "Platform",
                    "DurationInSeconds": 5,
                }
                for key in new
            ],
        }
        return web.json_response(document)

    async def instance(self, _: web.Request) -> web.Response:
        return web.json_response({"compute": {"name": "vm-0", "vmId": "bench"}})


@contextlib.asynccontextmanager
async def endpoint() -> AsyncGenerator[Endpoint]:
    made = Endpoint()
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


def configured(url: str, folder: Path) -> Path:
    settings = {
        "source": {"endpoint": url, "poll_interval": "200ms"},
        "state_dir": str(folder / "state"),
        "sinks": {"out": {"type": "file", "path": str(folder / "out.jsonl")}},
        "http": {"listen": "127.0.0.1:0"},
    }
    path = folder / "config.yaml"
    path.write_text(json.dumps(settings))
    return path


def delivered(folder: Path) -> int:
    path = folder / "out.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


async def weigh(transitions: int, steps: int) -> list[float]:
    """The bytes in use after each of so many equal parts of the transitions."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with endpoint() as at:
            seb = str(Path(sys.executable).with_name("seb"))
            process = await asyncio.create_subprocess_exec(
                *(seb, "run", "-c", str(configured(at.url, folder))),
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                async with asyncio.timeout(PATIENCE):
                    return [
                        await _after(transitions * step // steps, process.pid, folder)
                        for step in range(1, steps + 1)
                    ]
            finally:
                process.kill()
                await process.wait()


async def _after(transitions: int, pid: int, folder: Path) -> float:
    while delivered(folder) < transitions:
        await asyncio.sleep(0.2)
    return resident(pid)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transitions", type=int, default=10_000, help="in all (10000)")
    given = parser.parse_args()
    weights = asyncio.run(weigh(given.transitions, 5))
    shown = ", ".join(f"{weight * 2**-20:.0f}" for weight in weights)
    print(f"resident MiB after each fifth of {given.transitions} transitions: {shown}")
    print(f"last to second: {weights[-1] / weights[1]:.2f}x, aim {AIM}x")


if __name__ == "__main__":
    main()
