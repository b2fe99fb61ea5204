"""Plays a program on a stage, and returns the ledger."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from soak import faults
from soak.bridges import Bridge
from soak.ledger import Final, Ledger, Played
from soak.program import Fault, Program, Story
from soak.skipped import Skipped
from soak.stage import Stage, stage
from soak.voters import Voters

START = 60.0
BOUND = 90.0
"""How long the bridges may take to be ready again and to deliver everything."""
LOOKS = 3
"""How often each bridge asks after the last story: when it asks again, it has recorded the answer."""
Say = Callable[[str], None]


async def run(program: Program, folder: Path, say: Say, bound: float = BOUND) -> Ledger:
    """The whole soak; *folder* keeps the journals and the logs."""
    ledger = Ledger(program.seed, program.seconds, program.nodes, bound=bound)
    async with stage(folder, ledger) as on, asyncio.TaskGroup() as watching:
        watchers = [watching.create_task(on.watch()), watching.create_task(on.sample())]
        await _everyone_is_ready(on, START)
        on.began += on.now()  # the start is now
        ledger.started = datetime.now(UTC).isoformat()
        say(f"{len(on.bridges)} bridges are ready; {len(program.faults)} faults follow")
        voters = Voters(on)
        await _perform(on, program, voters)
        ledger.faults_over = on.now()
        say(f"The faults are over after {ledger.faults_over:.0f} s; waiting for calm")
        await _calm(on, voters, bound)
        for watcher in watchers:
            watcher.cancel()
        await _stop(on)
        await on.collect()
        ledger.ended = on.now()
    return ledger


async def _everyone_is_ready(on: Stage, patience: float) -> None:
    async with asyncio.timeout(patience):
        for bridge in on.bridges.values():
            while (await bridge.ask("/readyz"))[0] != 200:
                await asyncio.sleep(0.1)


# --- the program -------------------------------------------------------------------------------


async def _perform(on: Stage, program: Program, voters: Voters) -> None:
    """All lanes and stories side by side. Stories may go on after the last fault."""
    stories = [asyncio.create_task(_tell(on, voters, story)) for story in program.stories]
    voters.stories = stories
    by_lane = sorted(program.faults, key=lambda fault: (fault.target, fault.at))
    async with asyncio.TaskGroup() as lanes:
        for _, lane in groupby(by_lane, key=lambda fault: fault.target):
            lanes.create_task(_play_lane(on, list(lane)))
        lanes.create_task(asyncio.sleep(program.seconds))


async def _tell(on: Stage, voters: Voters, story: Story) -> None:
    await asyncio.sleep(max(0.0, story.at - on.now()))
    await voters.play(story)


async def _play_lane(on: Stage, lane: Sequence[Fault]) -> None:
    for fault in lane:
        await asyncio.sleep(max(0.0, fault.at - on.now()))
        on.ledger.faults.append(await _played(on, fault))


async def _played(on: Stage, fault: Fault) -> Played:
    played = Played(fault.kind, fault.target, on.now(), on.now(), dict(fault.how))
    bridge = on.bridges.get(fault.target)
    if bridge is not None and not bridge.runs:
        played.note = f"broke: {bridge.vm} was dead before"
        await bridge.start()
        return played
    try:
        await faults.play(fault.kind)(on, fault)
    except Skipped as reason:
        played.note = f"skipped: {reason}"
    except Exception as error:
        played.note = f"broke: {type(error).__name__}: {error}"
        if bridge is not None and not bridge.runs:
            await bridge.start()
    played.ended = on.now()
    return played


# --- afterward -----------------------------------------------------------------------------------


async def _calm(on: Stage, voters: Voters, bound: float) -> None:
    """Until all stories are over, and every bridge is ready and has delivered everything."""
    finals = {vm: Final(vm, why="it never calmed down") for vm in on.bridges}
    on.ledger.finals = list(finals.values())
    give_up, told = on.ledger.faults_over + bound, 0.0
    while on.now() < give_up:
        for vm, bridge in on.bridges.items():
            why = await _restless(bridge)
            final = finals[vm]
            final.why = why
            final.calm_after = None if why else final.calm_after or _after(on)
        if not told and all(story.done() for story in voters.stories):
            told = on.now()
        seen = told and all(_looked(on, vm, told) >= LOOKS for vm in on.bridges)
        if seen and all(not final.why for final in finals.values()):
            break
        await asyncio.sleep(0.3)
    for story in voters.stories:
        story.cancel()
    with contextlib.suppress(Exception):
        await asyncio.gather(*voters.stories, return_exceptions=True)


def _looked(on: Stage, vm: str, since: float) -> int:
    return sum(look.bridge == vm and look.asked > since for look in on.ledger.looks)


def _after(on: Stage) -> float:
    return max(0.001, on.now() - on.ledger.faults_over)


async def _restless(bridge: Bridge) -> str:
    """What this bridge has still to do; empty if nothing."""
    for path in ("/livez", "/readyz"):
        status, said = await bridge.ask(path)
        if status != 200:
            return f"{path} says {status} {said.strip()[:300]}"
    waiting = await asyncio.to_thread(bridge.unsettled)
    if waiting:
        return f"{len(waiting)} CloudEvents wait for a sink"
    due = [event for event, state in bridge.grants().items() if state in {"due", "asked"}]
    return f"StartRequests are due: {due}" if due else ""


async def _stop(on: Stage) -> None:
    """In order; and what each journal says at the end."""
    for final in on.ledger.finals:
        bridge = on.bridges[final.bridge]
        final.exit_code = await bridge.terminate()
        final.grants = bridge.grants()
        final.waiting = len(bridge.unsettled())
        with bridge.reading() as db:
            sql = "SELECT COUNT(*) FROM delivery WHERE how = 'dead'"
            final.dead_letters = db.execute(sql).fetchone()[0]
