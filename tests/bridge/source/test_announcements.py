"""What is published about the source itself, and what the log says."""

import logging
import time
from dataclasses import replace
from datetime import datetime, timedelta

from support.journal_tools import forbid_writing
from support.polling import VM, PolledBridge, kinds, next_second, restarted


async def test_the_first_answer_gives_a_snapshot(bridge):
    assert await bridge.poll() is None
    (snapshot,) = await bridge.told()
    data = snapshot["data"]
    assert snapshot["type"] == "azure.scheduledevents.source.snapshot.v1"
    assert (data["vm"], data["journal"], data["pending"]) == (VM, "new", [])
    assert (data["bootId"], data["bridgeVersion"]) == ("boot-1", "1.2.3")
    assert (data["reason"], data["status"]) == (None, 200)


async def degrade(bridge: PolledBridge, clock) -> None:
    bridge.world.fault("status", status=503)
    await bridge.poll()
    clock.ahead += timedelta(minutes=5)
    await bridge.poll(3)


async def test_an_outage_is_published_once_and_its_end_once_with_a_snapshot(bridge, clock):
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
    assert (told[2]["data"]["reason"], told[2]["data"]["status"]) == ("server-error", 200)
    assert (told[3]["data"]["reason"], told[3]["data"]["status"]) == (None, 200)


async def test_a_short_outage_is_not_published(bridge, clock):
    await bridge.poll()
    bridge.world.fault("status", status=503)
    await bridge.poll()
    clock.ahead += timedelta(minutes=4, seconds=58)
    await bridge.poll(3)
    bridge.world.clear_faults()
    await bridge.poll()
    assert await bridge.kinds() == ["source.snapshot"]


async def test_a_fleet_does_not_publish_an_outage_all_at_the_same_time(bridge, clock, monkeypatch):
    monkeypatch.setattr("bridge.source.poller.JITTER", 60.0)
    monkeypatch.setattr("bridge.source.poller.random.uniform", lambda _, most: most)
    await bridge.poll()
    await degrade(bridge, clock)
    assert not bridge.status.degraded
    clock.ahead += timedelta(seconds=60)
    await bridge.poll()
    assert bridge.status.degraded


async def test_a_published_outage_is_not_published_again_after_a_restart(
    simulator, tmp_path, clock
):
    path = tmp_path / "journal.db"
    async with restarted(simulator, path, clock=clock) as bridge:
        await bridge.poll()
        await degrade(bridge, clock)
    async with restarted(simulator, path, clock=clock) as bridge:
        await bridge.poll(2)
        assert bridge.status.degraded
        clock.ahead += timedelta(hours=1)
        await bridge.poll(2)
        bridge.world.clear_faults()
        await bridge.poll()
    async with restarted(simulator, path, clock=clock) as bridge:
        await bridge.poll()
        assert kinds(await bridge.told(), "source.snapshot") == [
            "source.degraded",
            "source.recovered",
        ]


async def test_a_replaced_journal_does_not_restart_the_outage(bridge, clock):
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


async def test_a_snapshot_is_due_now_and_then(bridge, clock):
    bridge.world.create(type="Freeze", notice="15m")
    await bridge.poll(3)
    assert (await bridge.kinds()).count("source.snapshot") == 1
    clock.ahead += timedelta(seconds=bridge.poller.config.source.snapshot_interval)
    next_second(bridge.simulator)
    await bridge.poll(2)
    snapshots = [e for e in await bridge.told() if e["type"].endswith("snapshot.v1")]
    assert len(snapshots) == 2
    assert [p["eventType"] for p in snapshots[1]["data"]["pending"]] == ["Freeze"]


async def test_started_stays_started(bridge, caplog):
    event = bridge.world.create(type="Reboot", notice="15m")
    bridge.world.start(event.name)
    await bridge.poll()
    bridge.world.entries[event.event.key].event = replace(event.event, status="Scheduled")
    await bridge.poll()
    assert await bridge.transitions() == ["started"]
    assert "event.reverted" in [r.message for r in caplog.records]


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
    assert said == ["poll.failed", "poll.recovered", "event.scheduled"]


async def test_the_log_says_which_vms_a_transition_is_about_and_when(bridge, caplog):
    caplog.set_level(logging.INFO, "bridge")
    bridge.world.create(type="Reboot", notice="15m")
    await bridge.poll()
    (line,) = [one for one in caplog.records if one.msg == "event.scheduled"]
    (told,) = await bridge.told("scheduled")
    assert (line.type, line.vms) == ("Reboot", [VM])
    assert line.not_before == told["data"]["notBefore"]


async def test_at_debug_level_each_poll_has_a_line_with_its_result(bridge, caplog):
    caplog.set_level(logging.DEBUG, "bridge")
    bridge.world.create(type="Reboot", notice="15m")
    await bridge.poll()
    bridge.world.fault("status", status=503, count=1)
    bridge.world.fault("empty", count=1)
    await bridge.poll(2)
    lines = [one for one in caplog.records if one.msg == "poll.finished"]
    assert [(one.levelname, one.result, one.status) for one in lines] == [
        ("DEBUG", "document", 200),
        ("DEBUG", "server-error", 503),
        ("DEBUG", "empty", 200),
    ]
    assert (lines[0].events, lines[0].seconds >= 0) == (1, True)


async def test_a_document_with_very_many_transitions_has_a_limited_number_of_lines(bridge, caplog):
    caplog.set_level(logging.INFO, "bridge")
    for number in range(130):
        bridge.world.create(name=f"event-{number}", type="Freeze", notice="1h", resources=[VM])
    await bridge.poll()
    said = [one for one in caplog.records if one.msg.startswith("event.")]
    assert [one.msg for one in said] == ["event.scheduled"] * 100 + ["event.more"]
    assert vars(said[-1])["count"] == 30
    assert bridge.status.transitions["scheduled"] == 130
