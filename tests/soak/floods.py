"""Floods: of votes that nobody may cast, of garbage, and of connections."""

import asyncio
import contextlib
import json
import random
import socket

from soak.program import Fault
from soak.settings import MQTT_VOTES, VOTES
from soak.stage import Stage
from support.debian import ToolFailed
from support.kcat import kcat
from support.mosquitto_clients import mosquitto_pub

MANY = 150


def _pending(stage: Stage) -> list[str]:
    return [entry.event.key for entry in stage.world.entries.values()] or ["NOBODY-KNOWS-THIS"]


async def votes(stage: Stage, fault: Fault) -> None:
    """From somebody who may not vote, and under the name of somebody who may, without proof."""
    dice, events = random.Random(fault.at), _pending(stage)
    lines = []
    for number in range(MANY):
        name = dice.choice(["mallory", "plant", "ops"])
        said = {"eventId": dice.choice(events), "approver": name, "id": f"{fault.at}-{number}"}
        lines.append(json.dumps({**said, "resource": dice.choice(["vm-0", "vm-1", "vm-2"])}))
    await _pour(stage, "\n".join(lines).encode())


async def garbage(stage: Stage, fault: Fault) -> None:
    dice = random.Random(fault.at)
    lines = [dice.randbytes(dice.randint(1, 400)).replace(b"\n", b" ") for _ in range(MANY)]
    await _pour(stage, b"\n".join(lines).replace(b"\0", b"?"))
    for bridge in stage.bridges.values():
        for line in lines[:20]:
            await bridge.ask("/api/v1/approvals", "POST", data=line)


async def _pour(stage: Stage, lines: bytes) -> None:
    """On both buses; a broker that is down or frozen gets less."""
    with contextlib.suppress(ToolFailed, TimeoutError):
        await kcat("-P", "-b", stage.kafka.bootstrap, "-t", VOTES, stdin=lines, timeout=8)
    with contextlib.suppress(ToolFailed, TimeoutError):
        async with asyncio.timeout(8):
            await mosquitto_pub(stage.mosquitto, MQTT_VOTES, lines, "-l")


async def connections(stage: Stage, fault: Fault) -> None:
    """More than a bridge accepts at the same time; they say nothing."""
    opened: list[socket.socket] = []
    for bridge in stage.bridges.values():
        for _ in range(300):
            line = socket.socket()
            line.setblocking(False)
            line.connect_ex(("127.0.0.1", bridge.port))
            opened.append(line)
        await asyncio.sleep(0)
    await asyncio.sleep(fault.lasting)
    for line in opened:
        line.close()
