"""`seb demo`: the whole loop on this machine: simulator, bridge, sink, and somebody who reads."""

import argparse
import asyncio
import json
import sys
import tempfile
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from bridge import log
from bridge.app import run as run_bridge
from bridge.config import load
from bridge.platform import AlreadyRunning
from bridge.simulator import Simulator

SPEED = 60.0
CONFIG = """\
source:
  endpoint: {endpoint}
state_dir: {directory}/state
sinks:
  demo:
    type: file
    path: {directory}/events.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--speed", type=float, default=SPEED, help="how much faster than Azure (default: 60)"
    )


def run(args: argparse.Namespace) -> int:
    """Play until Ctrl-C."""
    log.setup("warning")
    if not 1 <= args.speed <= 1000:
        print(f"seb demo: --speed must be from 1 to 1000, not {args.speed:g}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="seb-demo-") as directory:
        try:
            return asyncio.run(_play(Path(directory), args.speed))
        except* (AlreadyRunning, OSError) as group:
            print(f"seb demo: {group.exceptions[0]}", file=sys.stderr)
    return 1


async def _play(directory: Path, speed: float) -> int:
    async with Simulator("demo", speed=speed) as simulator:
        file = directory / "config.yaml"
        text = CONFIG.format(endpoint=simulator.endpoint, directory=directory)
        file.write_text(text, encoding="utf-8")
        events = directory / "events.jsonl"
        events.touch()
        _introduce(simulator.endpoint, file, speed)
        reading = asyncio.create_task(_read(events))
        ending = asyncio.create_task(_say_when_done(simulator))
        try:
            return await run_bridge(load(file, {}), lambda: load(file, {}))
        finally:
            for task in (reading, ending):
                task.cancel()
            await asyncio.gather(reading, ending, return_exceptions=True)
            print("\nStopped in order: polling first, then the sinks, then the journal.")


def _introduce(endpoint: str, file: Path, speed: float) -> None:
    print(
        f"Azure's metadata service, simulated, {speed:g} times faster   {endpoint}\n"
        f"The bridge polls it; its configuration                   {file}\n"
        f"Its API                                                  http://127.0.0.1:17245/api/v1/events\n"
        f"\nWhat a reader of its sink sees (Ctrl-C ends):\n",
        flush=True,
    )


async def _say_when_done(simulator: Simulator) -> None:
    await simulator.done()
    await asyncio.sleep(3)
    print(
        "\nThat was the script. Make an event of your own, or Ctrl-C:\n"
        f"  curl -X POST {simulator.endpoint}/control/events -d '"
        '{"type": "Preempt", "notice": "10m"}\'\n',
        flush=True,
    )


async def _read(path: Path) -> None:
    """Follow the file as any log shipper would, one line for each CloudEvent."""
    with path.open(encoding="utf-8") as lines:
        line = ""
        while True:
            line += lines.readline()
            if not line.endswith("\n"):
                await asyncio.sleep(0.1)
                continue
            said, line = _sentence(json.loads(line)), ""
            if said:
                print(said, flush=True)


def _sentence(envelope: dict[str, Any]) -> str | None:
    """One CloudEvent for a person; None for those about the bridge itself."""
    what = envelope["type"].removeprefix("azure.scheduledevents.").removesuffix(".v1")
    data = envelope["data"]
    if "eventType" not in data:
        return None
    at = datetime.fromisoformat(envelope["time"]).astimezone()
    notice = data["noticeSeconds"]
    when = f"in {notice:.0f} s" if notice is not None and notice >= 0 else ""
    parts = (f"{at:%H:%M:%S}", f"{what:<10}", f"{data['eventType']:<9}", data["eventId"][:8])
    return "  ".join((*parts, f"{', '.join(data['resources']):<6}", f"{when:<9}", _remark(data)))


def _remark(data: dict[str, Any]) -> str:
    if "notBefore" in data["changes"]:
        moved = data["changes"]["notBefore"]
        with suppress(TypeError, ValueError):
            old, new = (datetime.fromisoformat(moved[k]).astimezone() for k in ("from", "to"))
            return f"moved from {old:%H:%M:%S} to {new:%H:%M:%S}"
    ends = {"Canceled": "no longer announced", "Completed": "over"}
    return ends.get(data["status"]) or data["description"] or ""
