from datetime import timedelta

import pytest
from support.simulator_tools import START, make_world, whats

from bridge.simulator import Refused, Unknown
from bridge.simulator.world.rules import RuleBroken
from bridge.simulator.world.script import Script


def test_an_event_nobody_approves_starts_at_not_before_and_then_goes():
    world, clock = make_world()
    event_id = world.create(type="Reboot", notice="15m", started_for="10m").event_id
    clock.at(world, 899)
    assert [event.status for event in world.document().events] == ["Scheduled"]
    clock.at(world, 900)
    (event,) = world.document().events
    assert (event.event_id, event.status, event.not_before) == (event_id, "Started", None)
    clock.at(world, 1499)
    assert world.document().events
    clock.at(world, 1500)
    assert world.document().events == ()
    assert whats(world.truth.records) == ["scheduled", "started", "completed"]
    assert [r["cause"] for r in world.truth.records] == ["announced", "not before", "over"]
    assert {r["eventId"] for r in world.truth.records} == {event_id}
    assert [r["at"] for r in world.truth.records] == [
        "2026-11-16T12:00:00.000Z",
        "2026-11-16T12:15:00.000Z",
        "2026-11-16T12:25:00.000Z",
    ]


def test_the_incarnation_rises_by_one_at_every_change_and_only_then():
    world, clock = make_world()
    seen = [world.document().incarnation]
    world.create(type="Reboot", name="a", resources=["x", "y"])
    seen.append(world.document().incarnation)
    world.reschedule("a", "20m")
    seen.append(world.document().incarnation)
    world.update("a", resources=["x"])
    seen.append(world.document().incarnation)
    world.update("a", resources=["x"])
    world.reschedule("a", "20m")
    clock.at(world, 60)
    seen.append(world.document().incarnation)
    world.start("a")
    world.complete("a")
    seen.append(world.document().incarnation)
    assert seen == [1, 2, 3, 4, 4, 6]


def test_an_approval_starts_the_event_for_all_its_resources_after_its_delay():
    world, clock = make_world()
    entry = world.create(type="Reboot", resources=["a", "b"], starts_after_approval="10s")
    assert world.approve([entry.event_id.lower()]) == [entry.event_id]
    assert entry.status == "Scheduled"
    clock.at(world, 9)
    assert entry.status == "Scheduled"
    clock.at(world, 10)
    assert entry.status == "Started"
    assert world.truth.records[-1]["cause"] == "approved"
    assert world.truth.records[-1]["resources"] == ["a", "b"]
    assert world.approve([entry.event_id]) == []


def test_a_second_approval_while_the_first_waits_changes_nothing():
    world, clock = make_world()
    entry = world.create(type="Reboot", starts_after_approval="10s")
    assert world.approve([entry.event_id, entry.event_id]) == [entry.event_id]
    clock.at(world, 9)
    assert world.approve([entry.event_id]) == []
    clock.at(world, 10)
    assert entry.status == "Started"


def test_an_approval_with_no_delay_starts_the_event_at_once_and_is_in_the_truth_before_it():
    world, _ = make_world()
    world.approve([world.create(type="Freeze").event_id])
    assert whats(world.truth.records) == ["scheduled", "approval", "started"]


def test_a_slow_start_after_approval_never_goes_beyond_not_before():
    world, clock = make_world()
    entry = world.create(type="Preempt", notice="30s", starts_after_approval="5m")
    world.approve([entry.event_id])
    clock.at(world, 30)
    assert (entry.status, world.truth.records[-1]["cause"]) == ("Started", "not before")


def test_a_moved_event_starts_at_its_new_time():
    world, clock = make_world()
    entry = world.create(type="Reboot", notice="15m")
    clock.at(world, 60)
    world.reschedule(entry.event_id, "30m")
    assert entry.event.not_before == START + timedelta(minutes=31)
    clock.at(world, 1859)
    assert entry.status == "Scheduled"
    clock.at(world, 1860)
    assert entry.status == "Started"


def test_a_canceled_event_goes_and_never_starts():
    world, clock = make_world()
    world.create(type="Reboot", name="r")
    clock.at(world, 480)
    world.cancel("R")
    clock.at(world, 10_000)
    assert whats(world.truth.records) == ["scheduled", "canceled"]


def test_a_hardware_failure_begins_as_started():
    world, clock = make_world()
    entry = world.create(type="Redeploy", status="Started", started_for="1m")
    assert (entry.status, entry.event.not_before) == ("Started", None)
    clock.at(world, 60)
    assert whats(world.truth.records) == ["started", "completed"]


def test_an_event_without_an_end_stays_until_it_is_completed():
    world, clock = make_world()
    world.create(type="Reboot", name="r", status="Started", started_for=None)
    clock.at(world, 1_000_000)
    assert world.entries
    world.complete("r")
    assert not world.entries


def test_only_the_edges_that_azure_has_are_allowed():
    world, _ = make_world()
    world.create(type="Reboot", name="r")
    with pytest.raises(Refused, match="r is Scheduled; only a Started one can be completed"):
        world.complete("r")
    world.start("r")
    for act in (
        lambda: world.cancel("r"),
        lambda: world.start("r"),
        lambda: world.reschedule("r", "1m"),
        lambda: world.update("r", resources=[]),
    ):
        with pytest.raises(Refused, match="r is Started; only a Scheduled one"):
            act()
    world.complete("r")
    with pytest.raises(Unknown, match="'r'"):
        world.find("r")


def test_event_ids_are_upper_case_guids_and_depend_on_scenario_seed_and_name_alone():
    def ids(**scenario) -> list[str]:
        world, _ = make_world(**scenario)
        return [world.create(type="Reboot").event_id, world.create(type="Freeze").event_id]

    first = ids(seed=1)
    assert first == ids(seed=1)
    assert len({*first, *ids(seed=2), *ids(seed=1, name="other")}) == 6
    assert all(event_id == event_id.upper() and len(event_id) == 36 for event_id in first)


def test_an_event_that_returns_has_the_same_id_and_another_life():
    world, _ = make_world()
    first = world.create(type="Reboot", name="r")
    with pytest.raises(Refused, match="still there"):
        world.create(type="Reboot", name="r")
    world.cancel("r")
    second = world.create(type="Reboot", name="r")
    assert first.event_id == second.event_id
    assert [r["life"] for r in world.truth.records] == [1, 1, 2]


def test_speed_divides_notice_and_phases_but_not_what_is_on_the_wire():
    world, clock = make_world(speed=60)
    entry = world.create(type="Freeze", notice="15m", started_for="10m", duration=9)
    assert entry.event.not_before == START + timedelta(seconds=15)
    assert entry.event.duration == 9
    clock.at(world, 15)
    assert entry.status == "Started"
    clock.at(world, 25)
    assert not world.entries


def test_not_before_is_a_whole_second_and_nothing_starts_before_it():
    world, clock = make_world()
    clock.at(world, 0.3)
    entry = world.create(type="Preempt", notice="30s")
    assert entry.event.not_before == START + timedelta(seconds=31)
    clock.at(world, 30.9)
    assert entry.status == "Scheduled"


def test_a_new_order_of_resources_is_a_change_but_no_update():
    world, _ = make_world()
    world.create(type="Reboot", name="r", resources=["a", "b"])
    world.update("r", resources=["b", "a"])
    assert whats(world.truth.records) == ["scheduled", "reordered"]


def test_a_strict_world_keeps_the_minimum_notice_of_each_type():
    world, _ = make_world(strict=True)
    for event_type, least in (
        ("Freeze", "15m"),
        ("Reboot", "15m"),
        ("Redeploy", "10m"),
        ("Preempt", "30s"),
        ("Terminate", "5m"),
    ):
        with pytest.raises(RuleBroken, match=f"{event_type} needs a notice of at least {least}"):
            world.create(type=event_type, notice="29s")
        world.create(type=event_type, notice=least, name=event_type)
    with pytest.raises(RuleBroken, match="Reboot needs"):
        world.reschedule("Reboot", "14m")
    assert world.create(type="Reboot", status="Started").status == "Started"


def test_a_strict_world_has_at_most_ten_pending_user_events():
    world, _ = make_world(strict=True)
    for number in range(10):
        world.create(type="Reboot", source="User", name=f"u{number}")
    with pytest.raises(RuleBroken, match="at most 10"):
        world.create(type="Reboot", source="User")
    world.create(type="Reboot", source="Platform")
    world.start("u3")
    world.create(type="Reboot", source="User")


def test_without_strict_anything_goes():
    world, _ = make_world()
    for _ in range(12):
        world.create(type="Reboot", source="User", notice="1s")
    assert len(world.entries) == 12


def test_a_day_of_silence_disables_the_feature_and_resets_the_incarnation():
    world, clock = make_world(first_call_delay="2m", events_delay="5m")
    assert world.touch("vm-0") == START + timedelta(minutes=2)
    world.create(type="Reboot", name="r", notice="7d")
    assert world.document().events == ()
    clock.at(world, 300)
    assert len(world.document().events) == 1
    assert world.touch("vm-0") < clock.now
    before = world.document().incarnation
    clock.at(world, 300 + 86400)
    assert not world.enabling.on
    assert world.touch("vm-0") == clock.now + timedelta(minutes=2)
    assert world.document().incarnation == 1 < before
    assert world.document().events == ()
    clock.at(world, 600 + 86400)
    assert (world.document().incarnation, len(world.document().events)) == (2, 1)
    assert whats(world.truth.records) == [
        "enabled",
        "scheduled",
        "flowing",
        "disabled",
        "enabled",
        "flowing",
    ]


def test_asking_once_an_hour_keeps_the_feature_on():
    world, clock = make_world()
    for hour in range(72):
        clock.at(world, hour * 3600)
        world.touch("vm-0")
    assert world.enabling.on
    clock.at(world, 71 * 3600 + 86399)
    assert world.enabling.on
    clock.at(world, 71 * 3600 + 86400)
    assert not world.enabling.on


def test_each_vm_has_its_own_first_call():
    world, clock = make_world(first_call_delay="2m")
    world.touch("a")
    clock.at(world, 60)
    assert world.touch("a") == START + timedelta(minutes=2)
    assert world.touch("B") == START + timedelta(minutes=3)


def test_a_script_runs_in_order_and_says_what_it_had_to_leave_out():
    world, clock = make_world(
        script=[
            {"at": "8m", "cancel": "r"},
            {"at": "1s", "create": {"name": "r", "type": "Reboot"}},
            {"at": "2m", "repeat": 3, "every": "10s", "create": {"name": "f", "type": "Freeze"}},
        ]
    )
    script = Script(world)
    script.begin()
    clock.at(world, 130)
    assert [entry.name for entry in world.entries.values()] == ["r", "f-1", "f-2"]
    world.approve([world.event_id("r")])
    clock.at(world, 480)
    assert script.ended
    skipped = world.truth.records[-1]
    assert (skipped["what"], skipped["step"], skipped["action"]) == ("skipped", 1, "cancel")
    assert "Started" in skipped["reason"]


def test_a_script_can_do_everything_the_world_can():
    world, clock = make_world(
        script=[
            {"create": {"name": "r", "type": "Freeze"}},
            {"at": "1s", "update": {"event": "r", "type": "Reboot", "description": "worse"}},
            {"at": "2s", "reschedule": {"event": "r", "notice": "20m"}},
            {"at": "3s", "start": "r"},
            {"at": "4s", "complete": "r"},
            {"at": "5s", "fault": {"kind": "empty", "name": "e"}},
            {"at": "6s", "clear_faults": "e"},
            {"at": "7s", "fault": {"kind": "empty"}},
            {"at": "8s", "clear_faults": True},
            {"at": "9s", "disable": True},
        ]
    )
    world.touch("vm-0")
    Script(world).begin()
    clock.at(world, 10)
    assert whats(world.truth.records) == [
        "enabled",
        *("scheduled", "updated", "updated", "started", "completed"),
        *("fault-begun", "fault-ended", "fault-begun", "fault-ended", "disabled"),
    ]
    assert (world.truth.records[2]["eventType"], world.truth.records[2]["description"]) == (
        "Reboot",
        "worse",
    )


def test_a_fault_ends_by_count_by_time_and_by_hand():
    world, clock = make_world()
    world.fault("empty", count=2)
    hits = [len(world.faults.hit("GET", "scheduledevents", "vm-0")) for _ in range(3)]
    assert hits == [1, 1, 0]
    world.fault("reset", lasting="30s")
    clock.at(world, 29)
    assert world.faults.live
    clock.at(world, 30)
    assert not world.faults.live
    world.fault("garbage", name="g")
    assert (world.clear_faults("other"), world.clear_faults("g")) == (0, 1)
    kinds = [(r["what"], r["kind"]) for r in world.truth.records]
    assert kinds == [
        (w, k) for k in ("empty", "reset", "garbage") for w in ("fault-begun", "fault-ended")
    ]


def test_a_fault_hits_only_what_it_names():
    world, _ = make_world(vms=[{"name": "a"}, {"name": "b"}])
    world.fault("empty", paths=["instance"], methods=["GET"], vms=["B"])
    hit = world.faults.hit
    assert hit("GET", "instance", "b")
    assert not hit("GET", "instance", "a")
    assert not hit("POST", "instance", "b")
    assert not hit("GET", "scheduledevents", "b")


def test_delay_and_skew_go_together_with_one_other_fault():
    world, _ = make_world()
    for kind in ("delay", "empty", "garbage", "skew"):
        world.fault(kind, count=1)
    met = world.faults.hit("GET", "scheduledevents", "vm-0")
    assert [fault.kind for fault in met] == ["delay", "empty", "skew"]
    assert [live.fault.kind for live in world.faults.live] == ["garbage"]


def test_a_fault_of_chance_falls_the_same_way_for_the_same_seed():
    def falls(seed: int) -> list[int]:
        world, _ = make_world(seed=seed)
        world.fault("empty", chance=0.5)
        return [len(world.faults.hit("GET", "scheduledevents", "vm-0")) for _ in range(40)]

    assert falls(1) == falls(1) != falls(2)
    assert 0 < sum(falls(1)) < 40
