import pytest
from support.simulator_tools import make_world, whats

from bridge.simulator import Scenario, Simulator, Unusable
from bridge.simulator.world.script import Script, rehearse


def test_a_script_runs_in_order_and_reports_skipped_steps():
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


def test_a_strict_scenario_that_breaks_the_notice_is_found_before_it_is_played():
    scenario = Scenario.model_validate(
        {"name": "n", "strict": True, "script": [{"create": {"type": "Reboot", "notice": "5m"}}]}
    )
    expected = (
        r"scenario n: script\.0\.create: strict: Reboot needs a notice of at least 15m, not 5m"
    )
    with pytest.raises(Unusable, match=expected):
        Simulator(scenario)


def test_a_strict_scenario_with_eleven_user_events_at_once_is_found_and_in_turn_is_not():
    def scenario(every: str) -> Scenario:
        create = {"type": "Reboot", "source": "User"}
        script = [{"repeat": 11, "every": every, "create": create}]
        return Scenario.model_validate({"strict": True, "script": script})

    with pytest.raises(Unusable, match="at most 10 user-initiated events"):
        rehearse(scenario("1s"))
    rehearse(scenario("2m"))
