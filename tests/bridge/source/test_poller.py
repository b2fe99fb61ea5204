import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.journal_tools import forbid_writing, opened
from support.until import until

from bridge.config import Config
from bridge.journal import Journal, views
from bridge.journal.store import Store
from bridge.metadata.answers import Accepted, Problem
from bridge.metadata.budget import Budget
from bridge.metadata.client import Metadata
from bridge.metadata.discovery import Attempt, Candidate
from bridge.runtime.identity import Identity
from bridge.runtime.status import SourceStatus
from bridge.simulator import Scenario, Simulator
from bridge.source.poller import LONGEST_BACKOFF, Poller

VM = "vm-0"


class Shifted(datetime):
    """Our own clock, which tests may set."""

    ahead = timedelta()

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + cls.ahead


@pytest.fixture(autouse=True)
def no_jitter(monkeypatch):
    monkeypatch.setattr("bridge.source.poller.JITTER", 0.0)


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr("bridge.source.poller.datetime", Shifted)
    monkeypatch.setattr(Shifted, "ahead", timedelta())
    return Shifted


@dataclass
class Bridge:
    """A poller on a real journal under the simulated service; `poll` is one round."""

    simulator: Simulator
    journal: Journal
    poller: Poller
    metadata: Metadata

    @property
    def world(self):
        return self.simulator.world

    @property
    def status(self) -> SourceStatus:
        return self.poller.status

    async def poll(self, times: int = 1) -> Problem | None:
        problem = None
        for _ in range(times):
            problem = await self.poller.poll(self.metadata)
        return problem

    async def told(self) -> list[dict[str, Any]]:
        return await all_told(self.journal)

    async def kinds(self, *without: str) -> list[str]:
        return kinds(await self.told(), *without)

    async def transitions(self) -> list[str]:
        return await self.kinds("source.snapshot", "source.degraded", "source.recovered")


async def all_told(journal: Journal) -> list[dict[str, Any]]:
    rows = await journal.run(lambda store: views.after(store, 0, 1000))
    return [event.envelope for _, event in rows]


def kinds(told: list[dict[str, Any]], *without: str) -> list[str]:
    said = [e["type"].removeprefix("azure.scheduledevents.").removesuffix(".v1") for e in told]
    return [kind for kind in said if kind not in without]


@contextlib.asynccontextmanager
async def restarted(
    simulator: Simulator, path: Path, boot: str = "boot-1", **source: Any
) -> AsyncGenerator[Bridge]:
    """A process's life: what it knows at first is what the journal holds."""
    usual = {"endpoint": simulator.endpoint, "poll_interval": "200ms", "degraded_after": "5m"}
    config = Config.model_validate({"source": {**usual, **source}})
    async with opened(path, "sink") as journal:
        identity = Identity(config, journal)
        await identity.recall()
        budget = Budget(limit=10_000)
        poller = Poller(config, journal, identity, SourceStatus(), "1.2.3", boot, budget)
        async with Metadata(simulator.endpoint, "2020-07-01", budget=budget) as metadata:
            yield Bridge(simulator, journal, poller, metadata)


@pytest.fixture
async def simulator():
    async with Simulator(Scenario(rate_limit=None)) as made:
        yield made


@pytest.fixture
async def bridge(simulator, tmp_path):
    async with restarted(simulator, tmp_path / "journal.db") as made:
        yield made


async def test_the_first_answer_gives_a_snapshot(bridge):
    assert await bridge.poll() is None
    (snapshot,) = await bridge.told()
    data = snapshot["data"]
    assert snapshot["type"] == "azure.scheduledevents.source.snapshot.v1"
    assert (data["vm"], data["journal"], data["pending"]) == (VM, "new", [])
    assert (data["bootId"], data["bridgeVersion"]) == ("boot-1", "1.2.3")


async def test_a_scheduled_event_is_told_from_its_announcement_to_its_end(bridge):
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


async def test_now_and_then_the_time_of_the_last_good_answer_is_noted(bridge):
    await bridge.poll()
    first = (await bridge.journal.load()).last_good
    bridge.world.fault("skew", skew="11m")
    await bridge.poll()
    assert (await bridge.journal.load()).last_good - first > timedelta(minutes=10)


SPOILT = [
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


async def test_what_the_operator_got_wrong_is_an_error_in_the_log_and_the_rest_a_warning(
    bridge, caplog
):
    bridge.world.fault("status", status=400, count=2)
    bridge.world.fault("status", status=503, count=2)
    await bridge.poll(4)
    said = [(r.message, r.levelname) for r in caplog.records if r.name == "bridge.source.poller"]
    assert said == [("source.bad-request", "ERROR"), ("source.server-error", "WARNING")]


async def test_empty_bodies_are_not_believed_at_once(bridge, clock):
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


async def test_an_error_among_empty_bodies_makes_them_begin_anew(bridge, clock):
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


def next_second(simulator: Simulator) -> None:
    """What is about the source has one id a second: let Azure's clock be another one."""
    simulator.world.fault("skew", skew="10s")


async def degrade(bridge: Bridge, clock) -> None:
    bridge.world.fault("status", status=503)
    await bridge.poll()
    clock.ahead += timedelta(minutes=5)
    await bridge.poll(3)


async def test_an_outage_is_told_once_and_its_end_once_with_a_snapshot(bridge, clock):
    await bridge.poll()
    good = bridge.status.last_good
    await degrade(bridge, clock)
    assert bridge.status.degraded
    bridge.world.clear_faults()
    next_second(bridge.simulator)
    await bridge.poll(3)
    assert not bridge.status.degraded
    told = await bridge.told()
    assert kinds(told) == [
        "source.snapshot",
        "source.degraded",
        "source.recovered",
        "source.snapshot",
    ]
    data = told[1]["data"]
    assert (data["reason"], data["status"]) == ("server-error", 503)
    assert datetime.fromisoformat(data["lastGood"]) == good.replace(
        microsecond=good.microsecond // 1000 * 1000
    )
    assert told[2]["data"]["reason"] == "server-error"


async def test_a_short_outage_is_not_told(bridge, clock):
    await bridge.poll()
    bridge.world.fault("status", status=503)
    await bridge.poll()
    clock.ahead += timedelta(minutes=4, seconds=58)
    await bridge.poll(3)
    bridge.world.clear_faults()
    await bridge.poll()
    assert await bridge.kinds() == ["source.snapshot"]


async def test_a_fleet_does_not_tell_all_at_once(bridge, clock, monkeypatch):
    monkeypatch.setattr("bridge.source.poller.JITTER", 60.0)
    monkeypatch.setattr("bridge.source.poller.random.uniform", lambda _, most: most)
    await bridge.poll()
    await degrade(bridge, clock)
    assert not bridge.status.degraded
    clock.ahead += timedelta(seconds=60)
    await bridge.poll()
    assert bridge.status.degraded


async def test_an_outage_that_was_told_is_not_told_again_after_a_restart(
    simulator, tmp_path, clock
):
    path = tmp_path / "journal.db"
    async with restarted(simulator, path) as bridge:
        await bridge.poll()
        await degrade(bridge, clock)
    async with restarted(simulator, path) as bridge:
        await bridge.poll(2)
        assert bridge.status.degraded
        clock.ahead += timedelta(hours=1)
        await bridge.poll(2)
        bridge.world.clear_faults()
        await bridge.poll()
    async with restarted(simulator, path) as bridge:
        await bridge.poll()
        assert kinds(await bridge.told(), "source.snapshot") == [
            "source.degraded",
            "source.recovered",
        ]


async def test_a_journal_that_changes_hands_does_not_begin_the_outage_anew(bridge, clock):
    await bridge.poll()
    bridge.world.fault("status", status=503)
    await bridge.poll()
    clock.ahead += timedelta(minutes=4)
    await forbid_writing(bridge.journal)
    await bridge.journal.append([], time.time())
    assert await bridge.journal.repair()
    await bridge.poll()
    clock.ahead += timedelta(minutes=1)
    await bridge.poll()
    assert bridge.status.degraded


async def test_a_snapshot_is_due_now_and_then(bridge, monkeypatch):
    bridge.world.create(type="Freeze", notice="15m")
    await bridge.poll(3)
    assert (await bridge.kinds()).count("source.snapshot") == 1
    later = time.monotonic() + bridge.poller.config.source.snapshot_interval
    shim = SimpleNamespace(time=time.time, monotonic=lambda: later)
    monkeypatch.setattr("bridge.source.poller.time", shim)
    next_second(bridge.simulator)
    await bridge.poll(2)
    snapshots = [e for e in await bridge.told() if e["type"].endswith("snapshot.v1")]
    assert len(snapshots) == 2
    assert [p["eventType"] for p in snapshots[1]["data"]["pending"]] == ["Freeze"]


async def test_what_happened_while_nobody_watched_is_inferred(simulator, tmp_path):
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


async def test_after_a_boot_absence_proves_nothing_for_a_while(simulator, tmp_path):
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


async def test_started_stays_started(bridge, caplog):
    event = bridge.world.create(type="Reboot", notice="15m")
    bridge.world.start(event.name)
    await bridge.poll()
    bridge.world.entries[event.event.key].event = replace(event.event, status="Scheduled")
    await bridge.poll()
    assert await bridge.transitions() == ["started"]
    assert "event.went_back" in [r.message for r in caplog.records]


async def test_while_the_name_is_unknown_nothing_is_dropped(bridge):
    bridge.world.fault("status", status=500, paths=["instance"])
    bridge.world.create(type="Reboot", notice="15m", resources=["another-vm"])
    await bridge.poll()
    assert await bridge.transitions() == ["scheduled"]
    assert (await bridge.told())[0]["data"]["observer"]["affected"] is None
    bridge.world.clear_faults()
    bridge.poller.identity._ask_at = 0.0
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


async def test_all_publishes_what_concerns_other_vms(simulator, tmp_path):
    simulator.world.create(type="Reboot", notice="15m", resources=["another-vm"])
    async with restarted(simulator, tmp_path / "journal.db", scope="all") as bridge:
        await bridge.poll()
        assert await bridge.transitions() == ["scheduled"]


async def spoil(journal: Journal) -> None:
    def damage(store: Store) -> None:
        store.connection.execute("UPDATE tracked SET body = 'no json'")
        store.connection.execute("INSERT OR IGNORE INTO tracked VALUES ('X', 'no json')")

    await journal.run(damage)
    await journal.load()


async def test_a_lost_journal_is_followed_by_a_snapshot_and_what_is_pending(bridge):
    bridge.world.create(type="Reboot", notice="15m")
    await bridge.poll(2)
    before = await bridge.told()
    await spoil(bridge.journal)
    assert await bridge.told() == []
    await bridge.poll(2)
    told = await bridge.told()
    assert kinds(told) == ["scheduled", "source.snapshot"]
    assert told[0]["id"] == before[0]["id"]
    assert told[1]["data"]["journal"] == "quarantined"
    assert await bridge.journal.run(lambda s: s.recall("vm_id")) is not None
    assert await bridge.journal.run(lambda s: s.recall("instance")) is not None


async def test_a_journal_that_is_lost_between_reading_and_writing_loses_nothing(
    bridge, monkeypatch
):
    await bridge.poll()
    event = bridge.world.create(type="Reboot", notice="15m")
    bridge.world.create(type="Freeze", notice="15m")
    await bridge.poll()
    bridge.world.cancel(event.name)
    commit = bridge.journal.commit

    async def too_late(*args, **keys):
        await spoil(bridge.journal)
        monkeypatch.setattr(bridge.journal, "commit", commit)
        return await commit(*args, **keys)

    monkeypatch.setattr(bridge.journal, "commit", too_late)
    await bridge.poll()
    assert await bridge.transitions() == ["canceled"]
    assert (await bridge.journal.load()).tracked == {}
    await bridge.poll(2)
    told = await bridge.told()
    assert kinds(told) == ["canceled", "scheduled", "source.snapshot"]
    assert told[1]["data"]["eventType"] == "Freeze"


async def test_the_state_is_read_again_when_the_file_can_be_written_again(bridge):
    await bridge.poll()
    await forbid_writing(bridge.journal)
    bridge.world.create(type="Reboot", notice="15m")
    await bridge.poll(2)
    assert bridge.journal.trouble
    assert await bridge.transitions() == ["scheduled"]
    assert await bridge.journal.repair()
    await bridge.poll(2)
    assert await bridge.transitions() == ["scheduled"]


def pauses(poller: Poller, problem: Problem | None = None) -> list[float]:
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
    assert set(pauses(bridge.poller, Problem("throttled", "x", retry_after=7.0))) == {7.0}


async def run_for(poller: Poller, done) -> None:
    task = asyncio.create_task(poller.run())
    try:
        await until(lambda: done() or task.done())
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_it_runs_until_cancelled(bridge):
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


@pytest.fixture
def hurry(monkeypatch):
    monkeypatch.setattr(Poller, "_pause", lambda *_: 0.01)


def searches(monkeypatch, *answers: str | None) -> list[str | None]:
    """What each search finds, the last one for ever; and what was remembered at each."""
    asked: list[str | None] = []
    found = chain(answers, repeat(answers[-1]))

    async def discover(_, *, configured, remembered, budget):
        assert configured is None
        asked.append(remembered)
        url = next(found)
        candidate = Candidate(url or "http://169.254.169.254", "well-known")
        tried = [Attempt(candidate, "not there", chosen=url is not None)]
        return (candidate if url else None), tried

    monkeypatch.setattr("bridge.source.endpoint.discover", discover)
    return asked


async def test_an_endpoint_that_cannot_be_found_is_looked_for_again(
    simulator, tmp_path, monkeypatch, hurry
):
    searches(monkeypatch, None, None, simulator.endpoint)
    async with restarted(simulator, tmp_path / "journal.db", endpoint="auto") as bridge:
        assert not await bridge.poller.once()
        assert bridge.status.problem == "unreachable"
        assert bridge.status.detail == "http://169.254.169.254 not there"
        assert bridge.status.last_poll is not None
        await run_for(bridge.poller, lambda: bridge.status.last_good)


async def test_an_endpoint_that_was_found_is_remembered_and_looked_for_when_it_is_lost(
    simulator, tmp_path, monkeypatch, hurry
):
    async with Simulator(Scenario(rate_limit=None)) as first:
        gone = first.endpoint
    asked = searches(monkeypatch, gone, simulator.endpoint)
    async with restarted(simulator, tmp_path / "journal.db", endpoint="auto") as bridge:
        await run_for(bridge.poller, lambda: bridge.status.last_good)
        assert bridge.status.problems["unreachable"] >= 5
        assert asked == [None, gone]
        assert await bridge.journal.run(lambda s: s.recall("endpoint")) == simulator.endpoint


async def test_an_endpoint_that_answers_badly_is_kept(simulator, tmp_path, monkeypatch, hurry):
    asked = searches(monkeypatch, simulator.endpoint)
    simulator.world.fault("status", status=500)
    async with restarted(simulator, tmp_path / "journal.db", endpoint="auto") as bridge:
        await run_for(bridge.poller, lambda: bridge.status.polls >= 8)
        assert len(asked) == 1


async def test_an_endpoint_that_was_configured_is_never_looked_for(tmp_path, hurry):
    async with Simulator(Scenario(rate_limit=None)) as first:
        pass
    async with restarted(first, tmp_path / "journal.db") as bridge:
        await run_for(bridge.poller, lambda: bridge.status.polls >= 8)
        assert bridge.status.origin == "configured"


async def test_the_clocks_difference_is_known(bridge):
    bridge.world.fault("skew", skew="-90s", count=1)
    await bridge.poll()
    assert bridge.status.clock_skew == pytest.approx(90, abs=1.5)
    await bridge.poll()
    assert bridge.status.clock_skew == 0.0
    assert abs(bridge.status.last_good - datetime.now(UTC)) < timedelta(seconds=30)


async def test_one_line_in_the_log_for_each_thing_that_happens(bridge, caplog):
    caplog.set_level(logging.INFO, "bridge")
    await bridge.poll()
    bridge.world.create(type="Reboot", notice="15m")
    bridge.world.fault("status", status=500, count=3)
    caplog.clear()
    await bridge.poll(6)
    said = [
        r.message
        for r in caplog.records
        if r.name in {"bridge.source.poller", "bridge.source.announcements"}
    ]
    assert said == ["source.server-error", "source.answers", "event.scheduled"]


# --- approvals between two polls -----------------------------------------------------------------


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


async def test_nothing_is_approved_by_a_document_of_an_earlier_life(simulator, tmp_path, hurry):
    event = simulator.world.create(type="Reboot", notice="15m").event.event_id
    async with restarted(simulator, tmp_path / "journal.db") as bridge:
        await bridge.poll()
        known = (await bridge.journal.load()).incarnation
    simulator.world.fault("status", methods=["GET"], status=500)
    async with restarted(simulator, tmp_path / "journal.db") as bridge, running(bridge.poller):
        await until(lambda: bridge.status.polls >= 2)
        answer = await bridge.poller.approve([event], known)
        assert isinstance(answer, Problem)
        assert answer.reason == "outdated"
        assert approvals(simulator) == []
        simulator.world.clear_faults()
        await until(lambda: bridge.status.last_good)
        assert isinstance(await bridge.poller.approve([event], known), Accepted)


async def test_an_approval_waits_for_the_document_that_is_on_its_way(bridge, hurry):
    event = bridge.world.create(type="Freeze", notice="15m").event.event_id
    async with running(bridge.poller):
        await until(lambda: bridge.status.last_good)
        known = (await bridge.journal.load()).incarnation
        bridge.world.fault("delay", methods=["GET"], delay="100ms")
        await until(bridge.poller._turn.locked)
        bridge.world.update(event, type="Reboot")
        answer = await bridge.poller.approve([event], known)
        assert isinstance(answer, Problem)
        assert (await bridge.journal.load()).incarnation != known
        assert approvals(bridge.simulator) == []
