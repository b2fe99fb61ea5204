from datetime import timedelta

from support.simulator_tools import START, make_world, whats


def test_a_day_of_silence_disables_the_feature_and_resets_the_incarnation():
    world, clock = make_world(first_call_delay="2m", events_delay="5m")
    assert world.touch("vm-0") == START + timedelta(minutes=2)
    world.create(type="Reboot", name="r", notice="7d")
    assert world.document().events == ()
    clock.at(world, 300)
    assert len(world.document().events) == 1
    assert world.touch("vm-0") < clock.now
    before = world.document().incarnation
    assert isinstance(before, int)
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
