"""Votes in bad weather: Azure answers 429 and 500, or not at all, and the bridge is killed."""

import contextlib
import json
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from support.bridge_process import Stage, stage
from support.judge import told
from support.until import until

SOURCE = {"tail": 1, "backoff": 0.5}
DIES_BEFORE_ITS_POST = {**SOURCE, "around_post": 1}
WEATHER: dict[str, list[dict[str, Any]]] = {
    "throttled, then broken": [
        {"kind": "throttle", "methods": ["POST"], "count": 1, "retry_after": 1},
        {"kind": "status", "status": 500, "methods": ["POST"], "count": 2},
    ],
    "both, for everybody": [
        {"kind": "status", "status": 500, "count": 4},
        {"kind": "throttle", "count": 2},
        {"kind": "status", "status": 503, "methods": ["POST"], "count": 1},
    ],
    "answers are lost": [{"kind": "reset", "methods": ["POST"], "count": 2, "processed": True}],
}


@contextlib.asynccontextmanager
async def voting_stage(folder: Path) -> AsyncGenerator[Stage]:
    """A reboot of two VMs that needs both approvals, and a bridge that has seen it."""
    path = folder / "votes"
    path.touch()
    source = {"type": "tail", "trust": "transport", "path": str(path)}
    async with stage(folder, quick=True, approvals={"from": {"bus": source}}) as at:
        at.world.create(
            name="kept", type="Reboot", notice="1h", starts_after_approval="1h",
            resources=["vm-0", "vm-1"],
        )  # fmt: skip
        yield at


def vote(at: Stage, *vms: str, **said: str) -> None:
    event = at.world.find("kept").event.event_id
    with (at.folder / "votes").open("a") as file:
        for vm in vms or ("vm-0", "vm-1"):
            file.write(f"{json.dumps({'eventId': event, 'resource': vm, **said})}\n")


def worsen(at: Stage, weather: str) -> None:
    for fault in WEATHER[weather]:
        at.world.fault(**fault)


def outcomes(at: Stage, kind: str) -> list[dict[str, Any]]:
    return [one for path in at.files[:1] for one in told(path, f"approval.{kind}")]


async def granted_once(at: Stage) -> None:
    await at.until(lambda: outcomes(at, "granted"), "the grant")
    assert await at.stop() == 0
    posts = [one for one in at.simulator.truth if one["what"] == "approval"]
    assert [bool(one["released"]) for one in posts if one["released"]] == [True]
    assert len(outcomes(at, "granted")) == 1
    assert outcomes(at, "failed") == []


@pytest.mark.parametrize("weather", WEATHER)
async def test_the_start_request_is_repeated_until_azure_accepts_it(tmp_path, weather):
    async with voting_stage(tmp_path) as at:
        await at.start(faults=SOURCE)
        await until(lambda: at.shown, "a first look")
        worsen(at, weather)
        vote(at)
        await granted_once(at)


async def test_a_kill_between_vote_and_post_in_bad_weather_grants_once(tmp_path):
    async with voting_stage(tmp_path) as at:
        vote(at)
        await at.start(faults=DIES_BEFORE_ITS_POST)
        assert await at.ended() == -signal.SIGKILL, at.output()
        worsen(at, "both, for everybody")
        await at.start(faults=SOURCE)
        await granted_once(at)


async def test_an_event_that_got_worse_while_the_bridge_was_dead_needs_new_votes(tmp_path):
    async with voting_stage(tmp_path) as at:
        vote(at)
        await at.start(faults=DIES_BEFORE_ITS_POST)
        assert await at.ended() == -signal.SIGKILL, at.output()
        at.world.update("kept", type="Redeploy")
        at.world.fault("delay", methods=["GET"], delay="2s", count=1)
        await at.start(faults=SOURCE)
        await at.until(lambda: len(outcomes(at, "refused")) == 2, "both votes to lapse")
        assert {one["data"]["reason"] for one in outcomes(at, "refused")} == {"superseded"}
        assert [one for one in at.simulator.truth if one["what"] == "approval"] == []
        vote(at, reason="ready for that, too")
        await granted_once(at)
