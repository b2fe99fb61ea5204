import pytest
from support.simulator_tools import make_world

from bridge.simulator.world.rules import RuleBroken


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


def test_without_strict_everything_is_allowed():
    world, _ = make_world()
    for _ in range(12):
        world.create(type="Reboot", source="User", notice="1s")
    assert len(world.entries) == 12


def test_an_unknown_type_gets_the_notice_of_a_reboot_unless_it_names_one():
    world, _ = make_world(strict=True)
    event, reboot = world.create(type="Teleport"), world.create(type="Reboot")
    assert event.not_before == reboot.not_before
    assert world.create(type="Teleport", notice="1s").not_before < reboot.not_before
