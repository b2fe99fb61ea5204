"""A metadata service on a bad day: errors do not mean empty, and an outage is published once."""

from functools import partial
from pathlib import Path

from support.bridge_process import Stage, stage
from support.judge import RANKS, in_order, kind, same_bytes, told, truthful

from bridge.simulator import Fault
from bridge.simulator.world.faults import LiveFault

OUTAGE, RECOVERY = "source.degraded", "source.recovered"
ERRORS = (
    {"kind": "status", "status": 500, "count": 2},
    {"kind": "status", "status": 404, "count": 1},
    {"kind": "status", "status": 410, "count": 1},
    {"kind": "throttle", "count": 1},
    {"kind": "garbage", "count": 1},
    {"kind": "wrong-shape", "count": 1},
    {"kind": "truncated", "count": 1},
    {"kind": "oversized", "count": 1},
    {"kind": "reset", "count": 1},
    {"kind": "redirect", "count": 1},
    {"kind": "not-modified", "count": 1},
    {"kind": "empty", "count": 4},
    {"kind": "delay", "delay": "500ms", "count": 1},
    {"kind": "skew", "skew": "-3m", "count": 3},
)


def is_over(at: Stage, fault: LiveFault) -> bool:
    return fault not in at.world.faults.live


async def test_no_bad_answer_is_taken_for_the_end_of_an_event(tmp_path: Path):
    async with stage(tmp_path, quick=True, source={"degraded_after": "10m"}) as at:
        at.world.create(name="started", type="Reboot", status="Started", started_for=None)
        at.world.create(name="waiting", type="Reboot", notice="1h", started_for=None)
        await at.start(faults={"backoff": 0.2})
        await at.polled(2)
        for fault in ERRORS:
            live = at.world.fault(Fault.model_validate(fault))
            await at.until(partial(is_over, at, live), live.name)
            await at.polled(1)
        assert not told(at.files[0], "completed", "canceled")
        at.world.complete("started")
        at.world.cancel("waiting")
        await at.polled(3)
        assert await at.stop() == 0
        for path in at.files:
            ends = [kind(each) for each in told(path, "completed", "canceled")]
            assert ends == ["completed", "canceled"]
            assert not told(path, "source.degraded", "source.recovered")


async def test_an_outage_and_its_end_are_published_once_even_across_a_kill(tmp_path: Path):
    async with stage(tmp_path, quick=True, source={"degraded_after": "1s"}) as at:
        at.world.create(name="kept", type="Reboot", notice="1h", started_for=None)
        await at.start(faults={"jitter": 0})
        await at.polled(2)
        at.world.fault("status", status=503, name="outage")
        await at.until(lambda: told(at.files[1], "source.degraded"), "degraded")
        await at.kill()
        await at.start(faults={"jitter": 0})
        await at.until_said("poll.failed")
        at.world.clear_faults()
        await at.until(lambda: told(at.files[1], "source.recovered"), "recovered")
        await at.polled(3)
        assert await at.stop() == 0
        for path in at.files:
            assert [kind(each) for each in told(path, OUTAGE, RECOVERY)] == [OUTAGE, RECOVERY]
            assert not told(path, "completed", "canceled")
        assert [*same_bytes(at.files), *in_order(at.files)] == []


async def test_the_flaky_scenario_from_end_to_end(tmp_path: Path):
    """A hundred times faster: many faults wait for a number of requests."""
    async with stage(
        tmp_path, "flaky", speed=60, quick=True, source={"degraded_after": "1s"}
    ) as at:
        await at.start(faults={"jitter": 0, "backoff": 0.3})
        await at.simulator.done()
        await at.until(lambda: all(told(p, "completed") for p in at.files), "the event's end")
        await at.polled(3)
        assert await at.stop() == 0
        complaints = [*same_bytes(at.files), *in_order(at.files)]
        assert [*complaints, *truthful(at.simulator.truth, at.files[0])] == []
        for path in at.files:
            story = [kind(each) for each in told(path, *RANKS)]
            assert len(story) >= 2, "on a slow machine one of the states may never be shown"
            assert story[-1] == "completed"
            assert "canceled" not in story
            outages = [kind(each) for each in told(path, OUTAGE, RECOVERY)]
            assert outages
            assert outages == [OUTAGE, RECOVERY] * (len(outages) // 2)
