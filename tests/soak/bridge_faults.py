"""Faults of a bridge, of its clock and of its disk: one function each."""

import asyncio
import errno
import json
import random
import signal
from pathlib import Path

from soak.bridges import Bridge
from soak.program import Fault
from soak.skipped import Skipped
from soak.stage import Stage

SLOW = 30.0
"""How long a fault may take to end by itself."""


def _bridge(stage: Stage, fault: Fault) -> Bridge:
    return stage.bridges[fault.target]


async def _alive(stage: Stage, fault: Fault) -> Bridge:
    """Once it handles signals: before that, they end any process."""
    bridge = _bridge(stage, fault)
    async with asyncio.timeout(SLOW):
        while (await bridge.ask("/livez"))[0] != 200:
            await asyncio.sleep(0.1)
    return bridge


async def kill(stage: Stage, fault: Fault) -> None:
    bridge = _bridge(stage, fault)
    await bridge.kill()
    await asyncio.sleep(fault.lasting)
    await bridge.start()


async def terminate(stage: Stage, fault: Fault) -> None:
    bridge = await _alive(stage, fault)
    code = await bridge.terminate()
    if code != 0:
        raise AssertionError(f"{bridge.vm} ended with {code} after SIGTERM")
    await asyncio.sleep(fault.lasting)
    await bridge.start()


async def kill_at_commit(stage: Stage, fault: Fault) -> None:
    """Kill it with a transaction written but not committed, or committed but not yet known."""
    bridge = _bridge(stage, fault)
    await bridge.kill()
    place = "after_commit" if fault.how["after"] else "before_commit"
    await bridge.start(**{place: fault.how["number"]})
    await bridge.ended(SLOW)
    await bridge.start()


async def freeze(stage: Stage, fault: Fault) -> None:
    bridge = _bridge(stage, fault)
    bridge.signal(signal.SIGSTOP)
    await asyncio.sleep(fault.lasting)
    bridge.signal(signal.SIGCONT)


async def reload(stage: Stage, fault: Fault) -> None:
    """A changed sink: it closes and reopens with its place kept."""
    bridge = await _alive(stage, fault)
    changed = f"{bridge.number}-{fault.at}"
    bridge.config["sinks"]["hook"]["headers"] = {"X-Soak": changed}
    bridge.configure()
    bridge.signal(signal.SIGHUP)


async def bad_reload(stage: Stage, fault: Fault) -> None:
    bridge = await _alive(stage, fault)
    bridge.configure(json.dumps({**bridge.config, "sinks": {"hook": {"type": "wehbook"}}}))
    bridge.signal(signal.SIGHUP)
    await asyncio.sleep(fault.lasting)
    bridge.configure()
    bridge.signal(signal.SIGHUP)


async def clock_step(stage: Stage, fault: Fault) -> None:
    bridge = _disturbed(stage, fault)
    bridge.disturb(clock=fault.how["seconds"])
    await asyncio.sleep(fault.lasting)
    bridge.disturb(clock=0)


async def slow_disk(stage: Stage, fault: Fault) -> None:
    bridge = _disturbed(stage, fault)
    bridge.disturb(fsync=fault.how["milliseconds"] * 1000)
    await asyncio.sleep(fault.lasting)
    bridge.disturb(fsync=0)


async def full_disk(stage: Stage, fault: Fault) -> None:
    await _unwritable(stage, fault, errno.ENOSPC)


async def read_only_disk(stage: Stage, fault: Fault) -> None:
    await _unwritable(stage, fault, errno.EROFS)


async def _unwritable(stage: Stage, fault: Fault, error: int) -> None:
    """It ends when the journal is written again: what is only in memory does not survive a kill."""
    _disturbed(stage, fault)
    bridge = await _alive(stage, fault)
    bridge.disturb(error=error)
    await asyncio.sleep(fault.lasting)
    bridge.disturb(error=0)
    async with asyncio.timeout(SLOW):
        while True:
            why = await bridge.unready()
            if why is not None and "journal" not in why:
                return
            await asyncio.sleep(0.2)


def _disturbed(stage: Stage, fault: Fault) -> Bridge:
    bridge = _bridge(stage, fault)
    if bridge.kernel is None:
        raise Skipped("there is no C compiler, which this fault needs")
    return bridge


async def torn_journal(stage: Stage, fault: Fault) -> None:
    """Damage the file while the bridge is dead. What no sink had yet, and the votes, are lost."""
    bridge = _bridge(stage, fault)
    await bridge.kill()
    stage.ledger.rows += bridge.rows()
    stage.ledger.excused += [[bridge.vm, name] for name in bridge.unsettled()]
    bridge.generation += 1
    _damage(bridge.journal, fault.how["damage"])
    await asyncio.sleep(fault.lasting)
    await bridge.start()
    for channel in ("kafka", "mqtt", "http"):
        stage.votes_lost(channel)


def _damage(journal: Path, how: str) -> None:
    for companion in ("-wal", "-shm"):
        journal.with_name(journal.name + companion).unlink(missing_ok=True)
    size = journal.stat().st_size
    with journal.open("r+b") as file:
        if how == "cut":
            file.truncate(max(size // 2 - 100, 50))
            return
        file.seek(0)
        dice = random.Random(size)
        file.write(bytes(min(size, 8192)) if how == "zeros" else dice.randbytes(min(size, 8192)))
