"""Drills with real approvals and a real metadata service: voted on like an event, never POSTed."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from support.bridge import group
from support.until import until

from bridge.approvals.start_requests import Asked
from bridge.common.errors import Unavailable
from bridge.core.model import SCHEDULED
from bridge.drills import runner as drilling
from bridge.drills.plan import Plan
from bridge.journal import drills
from bridge.journal.grants import undecided
from bridge.journal.schema import Corrupt
from bridge.journal.votes import Receipt, forget, receive, votes
from bridge.metadata.client import Metadata
from bridge.plugins import Delivery
from bridge.policy.judge import Judgment
from bridge.policy.votes import CONTROL, Announced

WHO = {"actor": "uid 0", "via": "control"}


@pytest.fixture
async def vms(tmp_path):
    async with group(tmp_path, "vm-0", "vm-1") as made:
        yield made


@pytest.fixture
def posted(monkeypatch):
    """Every EventId that ever reaches the metadata service's own module."""
    ids = []
    real = Metadata.approve

    async def approve(self, choose, incarnation):
        async def noted():
            chosen = await choose()
            ids.extend(chosen)
            return chosen

        return await real(self, noted, incarnation)

    monkeypatch.setattr(Metadata, "approve", approve)
    return ids


async def begin(bridge, **plan):
    asked = Plan.model_validate({"eventType": "Reboot", "notice": "1h", **plan})
    return await drilling.start(bridge.runtime, asked, **WHO)


async def look(bridge):
    """One round of the drill runner and of the decisions."""
    await bridge.consider()
    await drilling.look(bridge.runtime)
    await bridge.consider()


async def life(bridge, key):
    """The CloudEvents about it, oldest first."""
    told = await bridge.told("")
    return [
        one["type"].removeprefix("azure.scheduledevents.").removesuffix(".v1")
        for one in told
        if one["subject"] == key
    ]


async def turn_back(bridge, **by):
    """Let time pass for the running drill and the votes on it."""
    journal, back = bridge.journal, timedelta(**by)
    drill = await journal.run(drills.under_way)
    event = replace(drill.known.event, not_before=drill.due - back)
    moved = replace(
        drill,
        known=replace(drill.known, event=event, since=drill.known.since - back),
        approve_by=drill.approve_by - back,
        started_at=drill.started_at and drill.started_at - back,
    )
    assert await journal.run(lambda store: drills.proceed(store, drill, moved, [], 0.0))
    cast = await journal.run(lambda store: votes(store, drill.key, 0))
    about = Announced(event.event_type, event.resources, event.not_before)
    older = [replace(one, at=one.at - back, about=about) for one in cast]
    await journal.run(lambda store: receive(store, Receipt(votes=older), 0.0))


# --- a normal life -------------------------------------------------------------------------------


async def test_it_is_announced_as_azure_would_and_says_that_it_is_a_drill(vms):
    bridge = await vms.bridge()
    drill = await begin(bridge, duration="10s", description="Tuesday")
    [told] = await bridge.told("scheduled")
    data = told["data"]
    assert told["subject"] == data["eventId"] == drill.key
    assert data["drill"] is True
    assert data["description"] == "Drill: Tuesday"
    assert (data["eventType"], data["status"], data["rank"]) == ("Reboot", "Scheduled", 1)
    assert (data["resources"], data["observer"]["affected"]) == (["vm-0"], True)
    assert (data["durationInSeconds"], data["documentIncarnation"]) == (10, None)
    assert data["approvable"] is True
    assert 3590 < data["noticeSeconds"] <= 3600


async def test_enough_votes_start_it_and_a_little_later_it_is_over(vms, posted):
    bridge = await vms.bridge()
    drill = await begin(bridge)
    await bridge.hear(drill.key.lower(), approver="orders")
    await look(bridge)
    assert await life(bridge, drill.key) == ["scheduled", "approval.recorded", "started"]
    await turn_back(bridge, seconds=3)
    await look(bridge)
    assert (await life(bridge, drill.key))[3:] == ["completed"]
    [recorded] = await bridge.told("approval.recorded")
    data = recorded["data"]
    assert (data["drill"], data["dryRun"], data["wouldGrant"]) == (True, True, True)
    ends = [one["data"] for one in await bridge.told("completed")]
    assert [(one["drill"], one["inferred"], one["previousStatus"]) for one in ends] == [
        (True, False, "Started")
    ]
    assert (posted, vms.posts()) == ([], [])


async def test_without_enough_votes_it_starts_when_its_time_has_come(vms):
    bridge = await vms.bridge(require="each-resource")
    drill = await begin(bridge, resources=["vm-1", "vm-0"])
    await bridge.hear(drill.key, resource="vm-0")
    await look(bridge)
    assert (await life(bridge, drill.key))[-1] == "approval.recorded"
    await turn_back(bridge, hours=1)
    await look(bridge)
    assert (await life(bridge, drill.key))[-1] == "started"
    kept = (await bridge.journal.run(drills.under_way)).ballot
    assert (kept.satisfied, kept.have, kept.missing) == (False, ("vm-0",), ("vm-1",))


async def test_a_hold_keeps_it_waiting_and_when_it_expires_it_starts(vms):
    bridge = await vms.bridge(hold_timeout="300ms")
    drill = await begin(bridge)
    await bridge.hear(drill.key, approver="billing", decision="hold")
    await bridge.hear(drill.key, approver="orders")
    await drilling.look(bridge.runtime)
    assert "started" not in await life(bridge, drill.key)
    task = asyncio.create_task(drilling.conduct(bridge.runtime))
    try:
        await until(lambda: life_has(bridge, drill.key, "started"))
    finally:
        task.cancel()


async def life_has(bridge, key, what):
    return what in await life(bridge, key)


async def test_the_first_line_says_how_to_stop_the_drill(vms):
    bridge = await vms.bridge()
    drill = await begin(bridge)
    assert await drilling.end(bridge.runtime, drill.key, actor="ops", via="http") is True
    assert await life(bridge, drill.key) == ["scheduled", "canceled"]
    [told] = await bridge.told("canceled")
    assert (told["data"]["inferred"], told["data"]["drill"]) == (True, True)
    assert await drilling.end(bridge.runtime, drill.key, actor="ops", via="http") is False
    assert await drilling.end(bridge.runtime, "NONE", actor="ops", via="http") is None


async def test_stopping_a_started_drill_completes_it(vms):
    bridge = await vms.bridge()
    drill = await begin(bridge, duration="15m")
    await bridge.hear(drill.key)
    await look(bridge)
    await drilling.end(bridge.runtime, drill.key, **WHO)
    assert (await life(bridge, drill.key))[-2:] == ["started", "completed"]


async def test_a_vote_after_its_start_or_end_is_too_late(vms):
    bridge = await vms.bridge()
    drill = await begin(bridge, duration="15m")
    await bridge.hear(drill.key, id="1")
    await look(bridge)
    await bridge.hear(drill.key, approver="late", id="2")
    assert (await bridge.became())[-1] == ("refused", "expired")
    await drilling.end(bridge.runtime, drill.key, **WHO)
    said = Delivery(json.dumps({"eventId": drill.key, "id": "3"}).encode())
    [outcome] = await bridge.intake.take_local(said, CONTROL, "uid 0")
    assert (outcome.outcome, outcome.reason) == ("refused", "expired")


async def test_a_local_vote_is_recorded_without_waiting_for_azure(vms):
    bridge = await vms.bridge()
    drill = await begin(bridge)
    said = Delivery(json.dumps({"eventId": drill.key}).encode())
    [outcome] = await bridge.intake.take_local(said, CONTROL, "uid 0")
    assert outcome.outcome == "recorded"


async def test_the_log_says_when_a_drill_begins_and_ends(vms, caplog):
    caplog.set_level("INFO", "bridge")
    bridge = await vms.bridge()
    drill = await begin(bridge)
    await drilling.end(bridge.runtime, drill.key, actor="ops", via="http")
    lines = [one for one in caplog.records if one.msg == "bridge.audited"]
    assert [(one.action, one.actor, one.via) for one in lines] == [
        ("drill.started", "uid 0", "control"),
        ("drill.ended", "ops", "http"),
    ]
    assert lines[0].detail["eventId"] == drill.key
    assert (lines[0].detail["eventType"], lines[0].detail["resources"]) == ("Reboot", ["vm-0"])


async def test_every_act_is_audited(vms):
    bridge = await vms.bridge()
    first = await begin(bridge)
    await drilling.end(bridge.runtime, first.key, actor="ops", via="http")
    second = await begin(bridge)
    await turn_back(bridge, hours=1)
    await look(bridge)
    await turn_back(bridge, seconds=3)
    await look(bridge)
    told = [one["data"] for one in await bridge.told("bridge.audited")]
    assert [(one["action"], one["actor"], one["via"]) for one in told] == [
        ("drill.started", "uid 0", "control"),
        ("drill.ended", "ops", "http"),
        ("drill.started", "uid 0", "control"),
        ("drill.ended", "bridge", "drill"),
    ]
    assert told[0]["detail"] == {
        "eventId": first.key,
        "eventType": "Reboot",
        "resources": ["vm-0"],
        "status": "Scheduled",
    }
    assert told[-1]["detail"]["eventId"] == second.key


# --- never POSTed --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "approvals",
    [
        {"require": "any"},
        {"require": "each-resource"},
        {"require": {"count": 1}},
        {"leader": "none"},
        {"auto": [{"event_type": "*", "all_resources": True}]},
        {"auto": [{"event_type": "*"}], "dry_run": True},
    ],
    ids=str,
)
async def test_no_vote_and_no_rule_makes_a_drill_reach_azure(vms, posted, approvals):
    bridge = await vms.bridge(**approvals)
    for _ in range(2):
        drill = await begin(bridge, duration="15m")
        said = Delivery(json.dumps({"eventId": drill.key}).encode(), identity="orders")
        await bridge.intake.take(said, "bus")
        await look(bridge)
        await bridge.poll()
        await turn_back(bridge, hours=1)
        await look(bridge)
        assert "started" in await life(bridge, drill.key)
        await drilling.end(bridge.runtime, drill.key, **WHO)
        await look(bridge)
    assert (posted, vms.posts()) == ([], [])


async def test_votes_on_a_drill_do_not_count_for_a_real_event_with_the_same_id(vms, posted):
    bridge = await vms.bridge(auto=[{"event_type": "Redeploy"}])
    drill = await begin(bridge)
    await bridge.hear(drill.key, id="1")
    made = vms.world.create(name="twin", type="Reboot", notice="1h", resources=["vm-0"])
    made.event = replace(made.event, event_id=drill.key)
    await bridge.poll()
    assert drill.key in (await bridge.journal.load()).tracked
    await bridge.hear(drill.key, approver="more", id="2")
    for _ in range(2):
        await look(bridge)
    await turn_back(bridge, seconds=3)
    await look(bridge)
    assert (posted, vms.posts()) == ([], [])
    assert (await bridge.journal.run(drills.under_way)) is None
    # A vote after the end of the drill is about the real event, and counts.
    await bridge.hear(drill.key, approver="orders", id="3")
    await look(bridge)
    assert posted == [drill.key]


async def test_a_drill_cannot_become_a_start_request(vms):
    bridge = await vms.bridge()
    drill = await begin(bridge)
    with pytest.raises(ValueError, match="never notified of a drill"):
        Asked(drill.known, Judgment(satisfied=True), "any", datetime.now(UTC))


async def test_start_requests_are_read_from_a_view_without_drills(vms):
    bridge = await vms.bridge()
    drill = await begin(bridge)
    await bridge.hear(drill.key)
    assert await bridge.journal.run(undecided) == []
    assert (await bridge.journal.load()).tracked == {}
    assert set((await bridge.journal.run(drills.open_to_votes)).tracked) == {drill.key}


async def test_a_real_event_is_not_affected_by_a_drill(vms, posted):
    bridge = await vms.bridge()
    drill = await begin(bridge)
    real = vms.world.create(name="real", type="Reboot", notice="1h", resources=["vm-0"])
    await bridge.poll()
    for key in (drill.key, real.event.event_id):
        await bridge.hear(key, id=key)
    await look(bridge)
    assert posted == [real.event.event_id]
    assert "started" in await life(bridge, drill.key)


# --- what the bridge does on its own -------------------------------------------------------------


async def test_rules_vote_on_it_too(vms):
    bridge = await vms.bridge(auto=[{"event_type": "Reboot", "max_duration": "10s"}])
    long = await begin(bridge)
    await look(bridge)
    assert await life(bridge, long.key) == ["scheduled"]
    await drilling.end(bridge.runtime, long.key, **WHO)
    short = await begin(bridge, duration="10s")
    await look(bridge)
    assert await life(bridge, short.key) == ["scheduled", "approval.recorded", "started"]
    [recorded] = await bridge.told("approval.recorded")
    assert (recorded["data"]["approver"], recorded["data"]["drill"]) == ("auto", True)


async def test_reminders_come_as_they_would(vms):
    bridge = await vms.bridge(remind=["5m"])
    drill = await begin(bridge, notice="6m")
    await turn_back(bridge, minutes=2)
    await look(bridge)
    [told] = await bridge.told("approval.due")
    assert (told["subject"], told["data"]["drill"]) == (drill.key, True)


async def test_in_a_configured_dry_run_it_starts_when_azure_would_start_it(vms):
    bridge = await vms.bridge(dry_run=True)
    drill = await begin(bridge)
    await bridge.hear(drill.key)
    await look(bridge)
    assert "started" not in await life(bridge, drill.key)
    await turn_back(bridge, hours=1)
    await look(bridge)
    kept = (await bridge.journal.run(drills.under_way)).ballot
    assert (kept.satisfied, kept.dry_run) == (True, True)


async def test_votes_on_a_drill_are_not_counted_in_metrics(vms):
    bridge = await vms.bridge(require="each-resource")
    drill = await begin(bridge, resources=["vm-0", "vm-1"])
    await bridge.hear(drill.key, id="1")
    await bridge.hear(drill.key, resource="vm-0", id="2")
    assert await bridge.became() == [("refused", "resource-required"), ("recorded", None)]
    assert bridge.runtime.status.approvals == {}


async def test_the_bridge_of_the_second_vm_publishes_its_own_drill(vms):
    first, second = await vms.bridge("vm-0"), await vms.bridge("vm-1")
    drill = await begin(second, resources=["vm-0", "vm-1"])
    for bridge in (first, second):
        await bridge.hear(drill.key)
    assert await second.became() == [("recorded", None)]
    assert await first.became() == []


# --- restarts, and the journal -------------------------------------------------------------------


async def test_a_drill_continues_after_a_restart(vms):
    bridge = await vms.bridge()
    drill = await begin(bridge)
    await bridge.hear(drill.key)
    again = await vms.bridge()
    await look(again)
    assert (await life(again, drill.key))[-1] == "started"


@pytest.mark.parametrize(("hours", "said"), [(1, ["started"]), (2, ["completed"])])
async def test_a_drill_that_ended_while_the_bridge_was_down_is_completed(vms, hours, said):
    bridge = await vms.bridge()
    drill = await begin(bridge)
    await turn_back(bridge, hours=hours)
    await look(await vms.bridge())
    assert (await life(bridge, drill.key))[1:] == said
    inferred = [one["data"]["inferred"] for one in await bridge.told(said[0])]
    assert inferred == [said == ["completed"]]


async def test_a_snapshot_contains_a_drill_while_it_runs(vms):
    bridge = await vms.bridge()
    drill = await begin(bridge)
    bridge.poller._snapshot_due = 0.0
    await asyncio.sleep(1 - datetime.now(UTC).microsecond / 1e6)
    await bridge.poll()
    [_, told] = await bridge.told("source.snapshot")
    assert [(one["eventId"], one["drill"]) for one in told["data"]["pending"]] == [
        (drill.key, True)
    ]
    await drilling.end(bridge.runtime, drill.key, **WHO)
    bridge.poller._snapshot_due = 0.0
    await asyncio.sleep(1 - datetime.now(UTC).microsecond / 1e6)
    await bridge.poll()
    assert (await bridge.told("source.snapshot"))[-1]["data"]["pending"] == []


async def test_polls_do_not_end_it(vms):
    bridge = await vms.bridge()
    drill = await begin(bridge)
    for _ in range(3):
        await bridge.poll()
    assert await life(bridge, drill.key) == ["scheduled"]


async def test_what_was_voted_by_rule_is_kept_as_long_as_the_drill(vms):
    bridge = await vms.bridge(auto=[{"event_type": "Reboot"}], dry_run=True)
    drill = await begin(bridge)
    await look(bridge)
    later = datetime.now(UTC) + timedelta(days=1)
    for moment, left in ((later, 1), (later, 0)):
        await bridge.journal.run(lambda store, moment=moment: forget(store, moment))
        cast = await bridge.journal.run(lambda store: votes(store, drill.key, 0))
        assert len(cast) == left
        await drilling.end(bridge.runtime, drill.key, **WHO)
    assert await bridge.journal.run(drills.every) == []


async def test_without_a_journal_nothing_is_rehearsed(vms):
    bridge = await vms.bridge()
    bridge.journal.trouble = "the disk is full"
    with pytest.raises(Unavailable):
        await begin(bridge)
    assert (await drilling.look(bridge.runtime) or 0) > 0
    bridge.journal.trouble = None
    assert await bridge.told("scheduled") == []


async def test_a_drill_that_cannot_be_read_is_a_broken_journal(vms):
    bridge = await vms.bridge()
    await begin(bridge)

    def spoil(store):
        store.connection.execute("UPDATE drill SET body = '{}'")
        with pytest.raises(Corrupt):
            drills.under_way(store)

    await bridge.journal.run(spoil)


# --- what cannot be rehearsed --------------------------------------------------------------------


async def test_only_one_drill_runs_at_a_time(vms):
    bridge = await vms.bridge()
    first = await begin(bridge)
    with pytest.raises(drilling.Busy, match=first.key):
        await begin(bridge)
    assert len(await bridge.told("scheduled")) == 1
    await drilling.end(bridge.runtime, first.key, **WHO)
    second = await begin(bridge)
    assert second.key != first.key


async def test_it_must_be_about_this_vm_unless_the_bridge_watches_all(vms):
    own = await vms.bridge("vm-0")
    with pytest.raises(drilling.Impossible, match="must be this VM, vm-0"):
        await begin(own, resources=["vm-1"])
    drill = await begin(await vms.bridge("vm-1", {"scope": "all"}), resources=["vm-0"])
    assert drill.known.affected is False


async def test_the_notice_must_leave_time_to_approve(vms):
    bridge = await vms.bridge(margin="5s")
    with pytest.raises(drilling.Impossible, match=r"longer than approvals\.margin, 5s\."):
        await begin(bridge, notice="5s")


async def test_while_the_vms_name_is_unknown_a_drill_must_name_its_resources(vms):
    vms.world.fault("status", paths=["instance"], status=500)
    bridge = await vms.bridge()
    with pytest.raises(drilling.Impossible, match="name is not known yet"):
        await begin(bridge)
    drill = await begin(bridge, resources=["vm-7"])
    assert (drill.known.affected, drill.known.event.status) == (None, SCHEDULED)
