from datetime import timedelta

import pytest
from support.simulator_tools import START, make_world, whats

from bridge.simulator import Refused, Unknown


def test_an_event_without_approval_starts_at_not_before_and_then_ends():
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
    with pytest.raises(Refused, match="still exists"):
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
