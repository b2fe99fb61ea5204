"""`seb demo`: the whole loop on this machine: simulator, bridge, sinks and consumers."""

import argparse
import asyncio
import secrets
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from bridge.app.lifecycle import run as run_bridge
from bridge.common import log
from bridge.common.fields import parse_duration
from bridge.config import load
from bridge.core.cloudevent import short_type
from bridge.demo.extras import NotInstalled
from bridge.demo.invitation import USER, console_link, free_port, invitation
from bridge.demo.kafka import APPROVALS, EVENTS, Cluster, Service
from bridge.demo.mqtt import SOURCE, plant_floor
from bridge.demo.webhook import listening
from bridge.platform import AlreadyRunning
from bridge.simulator import Simulator

SPEED = 60.0
PORT = 17245
WAITS = "5m"
"""How long the event after the script waits for your approval, on your own clock."""
DRAINING = 240.0
"""How long the consumer drains, in Azure's seconds."""
CONFIG = """\
source:
  endpoint: {endpoint}
state_dir: {directory}/state
sinks:
  orders-bus:
    type: kafka
    bootstrap_servers: ["{bootstrap}"]
    topic: {events}
{plant_floor}{pager}approvals:
  from:
    orders-bus: {{sink: orders-bus, topic: {approvals}, trust: transport}}
{source}http:
  listen: 127.0.0.1:{port}
  tokens:
    - {{name: checkout, token: {token}, scopes: [read, approve]}}
    - {{name: {user}, token: {secret}, scopes: [read, approve, operate]}}
"""
TOKEN = "demo"  # noqa: S105  it only gives access to a simulation


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
        except* (AlreadyRunning, NotInstalled, OSError) as group:
            print(f"seb demo: {group.exceptions[0]}", file=sys.stderr)
    return 1


async def _play(directory: Path, speed: float) -> int:
    cluster = await asyncio.to_thread(Cluster.start)
    async with (
        Simulator("demo", speed=speed) as simulator,
        plant_floor(_note) as floor,
        listening(_note) as pager,
    ):
        file = directory / "config.yaml"
        text = CONFIG.format(
            endpoint=simulator.endpoint,
            directory=directory,
            bootstrap=cluster.bootstrap,
            events=EVENTS,
            approvals=APPROVALS,
            plant_floor=floor.sink,
            pager=pager.sink,
            source=SOURCE,
            port=(port := free_port(PORT)),
            token=TOKEN,
            user=USER,
            secret=secrets.token_urlsafe(32),
        )
        file.write_text(text, encoding="utf-8")
        _introduce(
            {
                f"Azure's metadata service, simulated, {speed:g} times faster": simulator.endpoint,
                "Kafka, in memory": cluster.bootstrap,
                "MQTT, in memory": floor.address,
                "A pager, called by webhook": pager.url,
                "The bridge between them, and its configuration": str(file),
                f"Its API; the bearer token is {TOKEN}": f"http://127.0.0.1:{port}/api/v1/events",
            }
        )
        service = Service(cluster.bootstrap, DRAINING / speed, _tell, _note)
        return await _perform(file, service, simulator)


async def _perform(file: Path, service: Service, simulator: Simulator) -> int:
    """Run the bridge, the service that reads from it, and what the demo says about them."""
    config = load(file, {})
    consuming = asyncio.create_task(service.run())
    said = [
        asyncio.create_task(_invite(file.parent / "state", file)),
        asyncio.create_task(_say_when_done(simulator)),
    ]
    try:
        return await run_bridge(config, lambda: load(file, {}))
    finally:
        service.stop()
        for task in said:
            task.cancel()
        await asyncio.gather(consuming, *said, return_exceptions=True)
        print("\nStopped in order: polling first, then the sinks, then the journal.")


def _introduce(places: Mapping[str, str]) -> None:
    lines = [f"{what:<55}  {where}" for what, where in places.items()]
    heading = f"What a consumer of {EVENTS} sees (Ctrl-C stops the demo):"
    print("\n".join([*lines, "", heading, ""]), flush=True)


def _tell(envelope: dict[str, Any]) -> None:
    said = _sentence(envelope)
    if said:
        print(said, flush=True)


def _note(text: str) -> None:
    print(f"{datetime.now().astimezone():%H:%M:%S}  {text}", flush=True)


async def _invite(state_dir: Path, config: Path) -> None:
    print(f"\n{invitation(await console_link(state_dir), config)}\n", flush=True)


async def _say_when_done(simulator: Simulator) -> None:
    """After the script, announce one more event, which nobody approves but you."""
    await simulator.done()
    await asyncio.sleep(3)
    notice = f"{parse_duration(WAITS) * simulator.world.speed:g}s"
    yours = simulator.world.create(type="Redeploy", notice=notice, started_for="30m")
    print(
        "\nThat was the script. The next event waits for your approval, in the console or with:\n"
        f"  seb approve {yours.event_id[:6]}\n"
        "Create more events, or press Ctrl-C:\n"
        f"  curl -X POST {simulator.endpoint}/control/events -d '"
        '{"type": "Preempt", "notice": "10m"}\'\n',
        flush=True,
    )


def _sentence(envelope: dict[str, Any]) -> str | None:
    """One CloudEvent as a line of text; None for those about the bridge itself."""
    what = short_type(envelope["type"])
    data = envelope["data"]
    if "eventType" not in data:
        return None
    at = datetime.fromisoformat(envelope["time"]).astimezone()
    if what.startswith("approval."):
        told = f"{what}  {data['eventType']}  {(data['eventId'] or '-')[:8]}"
        return f"{at:%H:%M:%S}  {told}  by {data['approver']}: {data['reason']}"
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
