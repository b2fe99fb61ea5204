"""Who publishes a vote's outcome: the bridge of the first VM, once; strays only if configured."""

import logging

from support.bridge import cast_votes, counted, event_id

from bridge.plugins import Delivery

EACH = {"require": "each-resource"}


async def test_only_the_bridge_of_the_first_vm_publishes_and_the_others_only_count(two):
    second = await two.bridge("vm-1", **EACH)
    await second.hear(event_id(two), resource="vm-0")
    await second.hear(event_id(two))
    assert await second.told() == []
    assert len(await cast_votes(second, event_id(two))) == 1
    assert counted(second, "recorded") == counted(second, "refused", "resource-required") == 1


async def test_for_terminate_every_bridge_publishes(two):
    two.world.create(name="t", type="Terminate", notice="1h", resources=["vm-0", "vm-1"])
    second = await two.bridge("vm-1", **EACH)
    await second.hear(event_id(two, "t"), resource="vm-1")
    assert await second.became() == [("recorded", None)]


async def test_strays_are_counted_and_logged_once_a_minute_but_not_answered(two, caplog):
    bridge = await two.bridge()
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            await bridge.intake.take(Delivery(b"not JSON %d" % number), "bus")
    assert counted(bridge, "refused", "malformed") == 3
    assert [record.message for record in caplog.records] == ["approval.stray"]
    assert await bridge.told() == []


async def test_strays_are_answered_if_configured(two):
    bridge = await two.bridge(answer_strays=True)
    await bridge.intake.take(Delivery(b"{}", position="t/0/3"), "bus")
    [told] = await bridge.told()
    assert (told["data"]["reason"], told["data"]["approvalId"]) == ("malformed", "t/0/3")
    assert told["subject"] == "vm-0"


async def test_events_of_other_vms_are_left_to_their_bridges(two):
    two.world.create(name="theirs", type="Freeze", notice="1h", resources=["vm-1"])
    bridge = await two.bridge(answer_strays=True)
    await bridge.hear(event_id(two, "theirs"))
    assert counted(bridge, "dropped", "not-ours") == 1
    assert await cast_votes(bridge, event_id(two, "theirs")) == []
    assert await bridge.told() == []
