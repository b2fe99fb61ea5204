"""How the poller handles the answers of the metadata service."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.polling import VM, kinds, next_second, restarted, run_for
from support.until import until

from bridge.metadata.answers import WITHDRAWN, Accepted, SourceProblem
from bridge.simulator import Simulator
from bridge.source.poller import LONGEST_BACKOFF, Poller


async def test_a_scheduled_event_is_published_from_its_announcement_to_its_end(bridge):
    await bridge.poll()
    event = bridge.world.create(type="Reboot", notice="15m")
    await bridge.poll(2)
    bridge.world.update(event.name, description="another")
    await bridge.poll(2)
    bridge.world.start(event.name)
    await bridge.poll(2)
    bridge.world.complete(event.name)
    await bridge.poll(2)
    assert await bridge.transitions() == ["scheduled", "updated", "started", "completed"]
    completed = (await bridge.told())[-1]
    assert not completed["data"]["inferred"]
    assert bridge.status.transitions == dict.fromkeys(
        ("scheduled", "updated", "started", "completed"), 1
    )
    assert sum(bridge.status.notice.counts) == 1


async def test_quiet_polls_write_nothing(bridge):
    await bridge.poll()
    changes = await bridge.journal.run(lambda store: store.connection.total_changes)
    await bridge.poll(5)
    assert await bridge.journal.run(lambda store: store.connection.total_changes) == changes
    assert bridge.status.polls == 6


async def test_quiet_polls_do_not_use_the_thread_of_the_journal(bridge, monkeypatch):
    await bridge.poll()
    used: list[Any] = []
    with monkeypatch.context() as watched:
        watched.setattr(bridge.journal, "_in_thread", used.append)
        await bridge.poll(5)
    assert used == []


async def test_the_time_of_the_last_good_answer_is_recorded_now_and_then(bridge):
    await bridge.poll()
    first = (await bridge.journal.load()).last_good
    bridge.world.fault("skew", skew="11m")
    await bridge.poll()
    assert (await bridge.journal.load()).last_good - first > timedelta(minutes=10)


SPOILT: list[tuple[dict[str, Any], str]] = [
    ({"kind": "status", "status": 500}, "server-error"),
    ({"kind": "throttle"}, "throttled"),
    ({"kind": "unauthorized"}, "forbidden"),
    ({"kind": "forbidden"}, "forbidden"),
    ({"kind": "redirect"}, "redirected"),
    ({"kind": "garbage"}, "not-json"),
    ({"kind": "wrong-shape"}, "wrong-shape"),
    ({"kind": "truncated"}, "truncated"),
    ({"kind": "reset"}, "reset"),
]


@pytest.mark.parametrize(("fault", "reason"), SPOILT, ids=[f["kind"] for f, _ in SPOILT])
async def test_a_problem_changes_nothing_but_what_we_know_of_the_source(bridge, fault, reason):
    bridge.world.create(type="Reboot", notice="15m")
    await bridge.poll()
    before, state = await bridge.told(), await bridge.journal.load()
    bridge.world.fault(**fault)
    problem = await bridge.poll(8)
    assert problem is not None
    assert bridge.status.problem == problem.reason == reason
    assert bridge.status.problems == {reason: 8}
    assert bridge.status.detail == problem.detail
    assert (await bridge.told(), await bridge.journal.load()) == (before, state)
    bridge.world.clear_faults()
    assert await bridge.poll() is None
    assert (bridge.status.problem, bridge.status.detail) == (None, None)
    assert (await bridge.told(), await bridge.journal.load()) == (before, state)


async def test_configuration_mistakes_are_logged_as_errors_and_the_rest_as_warnings(bridge, caplog):
    bridge.world.fault("status", status=400, count=2)
    bridge.world.fault("status", status=503, count=2)
    await bridge.poll(4)
    ours = [r for r in caplog.records if r.name == "bridge.source.poller"]
    said = [(r.message, r.reason, r.levelname) for r in ours]
    failed = "poll.failed"
    assert said == [(failed, "bad-request", "ERROR"), (failed, "server-error", "WARNING")]


async def test_empty_bodies_are_not_trusted_immediately(bridge, clock):
    bridge.world.create(type="Reboot", notice="15m")
    await bridge.poll()
    bridge.world.fault("empty")
    assert await bridge.poll(4) is None
    clock.ahead += timedelta(seconds=9)
    await bridge.poll()
    assert await bridge.transitions() == ["scheduled"]
    clock.ahead += timedelta(seconds=2)
    await bridge.poll()
    assert await bridge.transitions() == ["scheduled", "canceled"]


async def test_an_error_among_empty_bodies_restarts_the_count(bridge, clock):
    bridge.world.create(type="Reboot", notice="15m")
    await bridge.poll()
    bridge.world.fault("empty", count=4)
    bridge.world.fault("status", status=500, count=1)
    await bridge.poll(5)
    clock.ahead += timedelta(seconds=11)
    bridge.world.fault("empty")
    await bridge.poll(4)
    assert await bridge.transitions() == ["scheduled"]


async def test_unchanged_is_as_good_as_the_document(bridge):
    bridge.world.create(type="Reboot", notice="15m")
    await bridge.poll()
    bridge.world.fault("not-modified")
    assert await bridge.poll(3) is None
    assert await bridge.transitions() == ["scheduled"]


async def test_the_first_answer_of_all_may_say_unchanged(bridge):
    bridge.world.fault("not-modified")
    assert await bridge.poll() is None
    assert await bridge.told() == []


async def test_changes_while_the_bridge_was_down_are_inferred(simulator, tmp_path):
    path = tmp_path / "journal.db"
    async with restarted(simulator, path) as bridge:
        event = bridge.world.create(type="Reboot", notice="15m")
        await bridge.poll()
        bridge.world.start(event.name)
        await bridge.poll()
    simulator.world.complete(event.name)
    next_second(simulator)
    async with restarted(simulator, path) as bridge:
        await bridge.poll()
        assert await bridge.transitions() == ["scheduled", "started", "completed"]
        completed = next(e for e in await bridge.told() if e["type"].endswith("completed.v1"))
        assert completed["data"]["inferred"]
        assert (await bridge.told())[-1]["data"]["journal"] == "continued"


async def test_after_a_boot_a_missing_event_proves_nothing_for_a_while(simulator, tmp_path):
    path = tmp_path / "journal.db"
    async with restarted(simulator, path) as bridge:
        event = bridge.world.create(type="Reboot", notice="15m")
        await bridge.poll()
    simulator.world.cancel(event.name)
    async with restarted(simulator, path, boot="boot-2") as bridge:
        await bridge.poll(3)
        assert await bridge.transitions() == ["scheduled"]
        bridge.world.fault("skew", skew="6m")
        await bridge.poll()
        assert await bridge.transitions() == ["scheduled", "completed"]


async def test_while_the_name_is_unknown_nothing_is_dropped(bridge):
    bridge.world.fault("status", status=500, paths=["instance"])
    bridge.world.create(type="Reboot", notice="15m", resources=["another-vm"])
    await bridge.poll()
    assert await bridge.transitions() == ["scheduled"]
    assert (await bridge.told())[0]["data"]["observer"]["affected"] is None
    bridge.world.clear_faults()
    bridge.poller.runtime.identity._ask_at = 0.0
    bridge.world.create(name="mine", type="Reboot", notice="15m", resources=[VM.upper()])
    bridge.world.create(name="other", type="Reboot", notice="15m", resources=["another-vm"])
    await bridge.poll()
    told = await bridge.told()
    assert kinds(told) == ["scheduled", "source.snapshot", "updated", "scheduled"]
    assert told[2]["data"]["observer"]["affected"] is False
    assert told[3]["data"]["resources"] == [VM.upper()]


async def test_the_name_is_remembered_after_a_restart(simulator, tmp_path):
    path = tmp_path / "journal.db"
    async with restarted(simulator, path) as bridge:
        await bridge.poll()
    simulator.world.fault("status", status=500, paths=["instance"])
    simulator.world.create(type="Reboot", notice="15m", resources=["another-vm"])
    async with restarted(simulator, path) as bridge:
        await bridge.poll()
        assert await bridge.transitions() == []
        assert (await bridge.told())[-1]["data"]["vm"] == VM


async def test_scope_all_publishes_events_of_other_vms(simulator, tmp_path):
    simulator.world.create(type="Reboot", notice="15m", resources=["another-vm"])
    async with restarted(simulator, tmp_path / "journal.db", scope="all") as bridge:
        await bridge.poll()
        assert await bridge.transitions() == ["scheduled"]


def pauses(poller: Poller, problem: SourceProblem | None = None) -> list[float]:
    return [poller._pause(problem) for _ in range(200)]


async def test_polls_come_at_their_interval_but_not_in_step_with_others(bridge):
    await bridge.poll()
    found = pauses(bridge.poller)
    assert 0.19 <= min(found) < 0.2 < max(found) <= 0.21


async def test_backoff_is_short(bridge):
    bridge.poller._failures = 50
    found = pauses(bridge.poller)
    assert 0.2 <= min(found) < 1 < max(found) <= LONGEST_BACKOFF == 5.0


async def test_the_service_says_how_long_to_wait(bridge):
    assert set(pauses(bridge.poller, SourceProblem("throttled", "x", retry_after=7.0))) == {7.0}


async def test_it_runs_until_canceled(bridge):
    await run_for(bridge.poller, lambda: bridge.status.polls >= 3)
    assert (bridge.status.endpoint, bridge.status.origin) == (
        bridge.simulator.endpoint,
        "configured",
    )
    assert await bridge.kinds() == ["source.snapshot"]


async def test_once_says_whether_there_was_an_answer(bridge):
    assert await bridge.poller.once()
    bridge.world.fault("status", status=500)
    assert not await bridge.poller.once()


def skew_lines(caplog):
    return [one for one in caplog.records if str(one.msg).startswith("clock.")]


async def test_a_clock_that_is_off_by_more_than_a_minute_is_logged_once_and_so_is_its_end(
    bridge, caplog
):
    caplog.set_level("INFO", logger="bridge")
    bridge.world.fault("skew", skew="-10m")
    await bridge.poll(3)
    (line,) = skew_lines(caplog)
    assert (line.levelname, line.msg) == ("WARNING", "clock.skewed")
    assert line.seconds == pytest.approx(600, abs=2)
    bridge.world.clear_faults()
    await bridge.poll(3)
    assert [one.msg for one in skew_lines(caplog)] == ["clock.skewed", "clock.corrected"]


async def test_a_source_that_is_gone_does_not_correct_the_clock(bridge, caplog):
    bridge.world.fault("skew", skew="-10m", count=1)
    await bridge.poll()
    bridge.world.fault("reset")
    await bridge.poll(3)
    assert bridge.status.skewed
    assert len(skew_lines(caplog)) == 1


async def test_a_clock_that_jumps_neither_hastens_nor_delays_the_report_of_an_outage(bridge):
    await bridge.poll()
    bridge.world.fault("status", status=503)
    await bridge.poll()
    bridge.clock.stepped += timedelta(hours=1)
    await bridge.poll()
    assert not bridge.status.degraded
    bridge.clock.stepped -= timedelta(hours=2)
    bridge.clock.ahead += timedelta(minutes=5)
    await bridge.poll()
    assert bridge.status.degraded


async def test_a_clock_that_jumps_does_not_make_empty_bodies_trusted(bridge):
    bridge.world.create(type="Reboot", notice="15m")
    await bridge.poll()
    bridge.world.fault("empty")
    await bridge.poll(4)
    bridge.clock.stepped += timedelta(hours=1)
    await bridge.poll(2)
    assert await bridge.transitions() == ["scheduled"]


async def test_the_difference_of_the_clocks_is_measured(bridge):
    bridge.world.fault("skew", skew="-90s", count=1)
    await bridge.poll()
    assert bridge.status.clock_skew == pytest.approx(90, abs=1.5)
    await bridge.poll()
    assert bridge.status.clock_skew == 0.0
    assert abs(bridge.status.last_good - datetime.now(UTC)) < timedelta(seconds=30)


def approvals(simulator: Simulator) -> list[dict[str, Any]]:
    return [one for one in simulator.truth if one["what"] == "approval"]


@contextlib.asynccontextmanager
async def running(poller: Poller) -> AsyncGenerator[None]:
    task = asyncio.create_task(poller.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def choosing(*events: str, incarnations: list[Any] | None = None) -> Any:
    """The last look of a StartRequest that finds these events; it notes the document's number."""

    async def choose(incarnation: int | str | None) -> tuple[str, ...]:
        if incarnations is not None:
            incarnations.append(incarnation)
        return events

    return choose


async def test_nothing_is_approved_by_a_document_of_an_earlier_life(simulator, tmp_path, hurry):
    event = simulator.world.create(type="Reboot", notice="15m").event.event_id
    async with restarted(simulator, tmp_path / "journal.db") as bridge:
        await bridge.poll()
    simulator.world.fault("status", methods=["GET"], status=500)
    async with restarted(simulator, tmp_path / "journal.db") as bridge, running(bridge.poller):
        await until(lambda: bridge.status.polls >= 2)
        answer = await bridge.poller.endpoint.approve(choosing(event))
        assert isinstance(answer, SourceProblem)
        assert answer.reason == "outdated"
        assert approvals(simulator) == []
        simulator.world.clear_faults()
        await until(lambda: bridge.status.last_good)
        assert isinstance(await bridge.poller.endpoint.approve(choosing(event)), Accepted)


async def test_an_approval_waits_for_the_document_that_is_on_its_way(bridge, hurry):
    event = bridge.world.create(type="Freeze", notice="15m").event.event_id
    incarnations: list[int | str | None] = []
    async with running(bridge.poller):
        await until(lambda: bridge.status.last_good)
        known = (await bridge.journal.load()).incarnation
        bridge.world.fault("delay", methods=["GET"], delay="100ms")
        await until(bridge.poller.endpoint.turn.locked)
        bridge.world.update(event, type="Reboot")
        answer = await bridge.poller.endpoint.approve(choosing(incarnations=incarnations))
        assert answer is WITHDRAWN
        assert incarnations == [(await bridge.journal.load()).incarnation] != [known]
        assert approvals(bridge.simulator) == []
