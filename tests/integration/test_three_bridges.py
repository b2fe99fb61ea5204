"""Three bridges of one availability set on one Kafka: each VM's vote counts, and one tells Azure."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from support.bridge_process import Stage, file_sink, posts
from support.judge import told
from support.kafka_broker import Broker
from support.kafka_stage import Topic, approvals, checkpoints, headers, kafka_sink
from support.until import until

from bridge.simulator import VM, Scenario, Simulator

VMS = ("web-0", "web-1", "web-2")
STANDS_IN_AFTER = {"web-0": "5s", "web-1": "1h", "web-2": "2s"}
"""The second one leads or keeps out of it: it dies when it would POST."""
OUTCOMES = [f"approval.{kind}" for kind in ("recorded", "granted", "refused", "failed")]
Bridges = dict[str, Stage]


@contextlib.asynccontextmanager
async def availability_set(
    folder: Path, kafka: Broker, events: Topic, votes: Topic, version: str
) -> AsyncGenerator[Bridges]:
    scenario = Scenario(vms=[VM(name=name) for name in VMS])
    async with Simulator(scenario) as simulator, contextlib.AsyncExitStack() as stack:
        made = {}
        for name in VMS:
            (folder / name).mkdir()
            source = {"endpoint": simulator.endpoints[name], "poll_interval": "200ms"}
            config = {
                "source": {**source, "api_version": version},
                "state_dir": str(folder / name / "state"),
                "sinks": {
                    "bus": kafka_sink(kafka.bootstrap, events.name),
                    "file": file_sink(folder / name, "told"),
                },
                "approvals": approvals(
                    votes.name, require="each-resource", takeover_after=STANDS_IN_AFTER[name]
                ),
                "http": {"listen": None},
            }
            made[name] = await stack.enter_async_context(Stage(folder / name, simulator, config))
        yield made


def outcomes(at: Stage) -> list[tuple[str, str]]:
    """What this bridge published about approvals: the kind, and of which event."""
    found = [one for path in at.files for one in told(path, *OUTCOMES)]
    return [(one["type"].split(".")[3], one["subject"]) for one in found]


async def vote(votes: Topic, event: str, vm: str) -> None:
    """The service on that VM is ready."""
    await votes.write({"eventId": event, "resource": vm, "approver": f"service-of-{vm}"})


async def ready(bridges: Bridges) -> None:
    for each in bridges.values():
        await each.until_said("approvals.connected")


@pytest.mark.parametrize("version", ["2017-03-01", "2020-07-01"])
async def test_each_vm_is_waited_for_and_the_next_bridge_takes_over_from_a_dead_one(
    kafka: Broker, tmp_path: Path, version: str
):
    events = Topic(kafka.bootstrap, await kafka.topic())
    votes = Topic(kafka.bootstrap, await kafka.topic())
    async with availability_set(tmp_path, kafka, events, votes, version) as bridges:
        first, second, third = bridges.values()
        world = first.world
        before_its_post = {"around_post": 1}
        await asyncio.gather(first.start(), second.start(faults=before_its_post), third.start())
        await ready(bridges)

        one = world.create(name="one", type="Reboot", notice="15m", resources=VMS[:2]).event.key
        await vote(votes, one, "web-1")
        await until(lambda: outcomes(first), "the first vote")
        await until(lambda: checkpoints(second) == checkpoints(third) != {}, "all to have read it")
        assert outcomes(first) == [("recorded", one)]
        assert posts(first) == []
        await vote(votes, one, "web-0")
        await until(lambda: len(outcomes(first)) == 2, "the grant")
        assert outcomes(first)[-1] == ("granted", one)
        assert world.find("one").status == "Started"

        two = world.create(name="two", type="Reboot", notice="15m", resources=VMS[1:]).event.key
        for vm in VMS[1:]:
            await vote(votes, two, vm)
        assert await second.ended() == -signal.SIGKILL, second.output()
        await until(lambda: ("granted", two) in outcomes(third), "the stand-in")
        await second.start()
        await second.until_said("approval.released_elsewhere")
        assert [await each.stop() for each in bridges.values()] == [0, 0, 0]

        assert [(post["vm"], post["released"]) for post in posts(first)] == [
            ("web-0", [one]),
            ("web-2", [two]),
        ]
        assert outcomes(second) == [("recorded", two)]
        assert outcomes(third) == [("granted", two)]
    # The one that died may have published what it had not noted yet, and does so again.
    kinds = {
        headers(each)["ce_id"]: headers(each)["ce_type"] for each in await about_approvals(events)
    }
    assert sorted(kind.split(".")[3] for kind in kinds.values()) == [
        "granted",
        "granted",
        "recorded",
        "recorded",
    ]


async def about_approvals(events: Topic) -> list[dict[str, object]]:
    records = await events.records()
    return [each for each in records if ".approval." in headers(each)["ce_type"]]
