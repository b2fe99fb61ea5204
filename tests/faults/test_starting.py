"""A start: the first poll comes first, and nothing waits for it for long."""

import json
from pathlib import Path

from support.bridge_process import Stage, stage
from support.judge import told


def in_this_order(at: Stage) -> list[str]:
    return [json.loads(line)["event"] for line in at.output().splitlines()]


async def test_the_first_poll_comes_before_the_api(tmp_path: Path):
    async with stage(tmp_path) as at:
        at.world.create(name="kept", type="Reboot", notice="1h")
        await at.start()
        await at.until_said("http.listening")
        events = in_this_order(at)
        assert events.index("event.scheduled") < events.index("http.listening")
        await at.polled(1)
        assert await at.stop() == 0
        (loaded,) = told(at.files[0], "bridge.audited")
        assert loaded["observer"] == "vm-0", "by then it is known who speaks"


async def test_an_endpoint_that_does_not_answer_yet_delays_nothing_else(tmp_path: Path):
    async with stage(tmp_path) as at:
        at.world.fault("delay", delay="1h", paths=["scheduledevents", "instance"])
        await at.start()
        await at.until_said("http.listening")
        assert not at.shown
        await at.until(lambda: len(at.files) == 2, "the sinks")
        await at.until(lambda: told(at.files[1], "bridge.audited"), "what it started with")
        assert await at.stop() == 0
