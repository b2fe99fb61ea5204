"""Who publishes a vote's outcome: the bridge of the first VM, once; strays only if configured."""

import logging

import pytest
from support.bridge import cast_votes, counted, event_id
from support.signing import Signer

from bridge.approvals.intake import Unauthorized
from bridge.approvals.publisher import MOST_REFUSALS
from bridge.journal.votes import votes_lately
from bridge.plugins import Delivery
from bridge.policy.votes import HTTP

ORDERS = Signer("orders")
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


def outcome_line(caplog, name):
    (line,) = [one for one in caplog.records if one.msg == name]
    return line


async def test_the_log_says_who_decided_what_about_which_vms_and_until_when(two, caplog):
    caplog.set_level(logging.INFO, "bridge")
    bridge = await two.bridge(**EACH)
    await bridge.hear(event_id(two), resource="vm-0", decision="hold", approver="orders")
    line = outcome_line(caplog, "approval.recorded")
    assert (line.levelname, line.decision, line.approver) == ("INFO", "hold", "orders")
    assert (line.type, line.vms, line.resource) == ("Reboot", ["vm-0", "vm-1"], "vm-0")
    assert line.not_before == (await bridge.told())[0]["data"]["notBefore"]
    assert line.verified is False


async def test_the_log_says_why_a_vote_does_not_count(two, caplog):
    caplog.set_level(logging.INFO, "bridge")
    bridge = await two.bridge(**EACH)
    await bridge.hear(event_id(two))
    line = outcome_line(caplog, "approval.refused")
    assert (line.levelname, line.reason) == ("INFO", "resource-required")
    assert line.detail == (await bridge.told())[0]["data"]["detail"]


async def test_a_vote_without_the_right_is_a_warning(two, caplog):
    bridge = await two.bridge(allow=[ORDERS.entry()])
    await bridge.intake.take(
        Signer("orders", seed=9).delivery(event_id(two)), "bus", must_sign=True
    )
    line = outcome_line(caplog, "approval.refused")
    assert (line.levelname, line.reason) == ("WARNING", "unauthorized")


async def test_a_forged_vote_over_http_is_a_warning_too_but_a_flood_does_not_fill_the_log(
    two, caplog
):
    bridge = await two.bridge(allow=[ORDERS.entry()])
    forged = Signer("orders", seed=9).delivery(event_id(two))
    for _ in range(MOST_REFUSALS + 10):
        with pytest.raises(Unauthorized):
            await bridge.intake.take_local(forged, HTTP, None)
    lines = [one for one in caplog.records if one.msg == "approval.refused"]
    assert {(one.levelname, one.reason, one.via) for one in lines} == {
        ("WARNING", "unauthorized", "http")
    }
    assert lines[0].event_id == event_id(two)
    assert len(lines) == MOST_REFUSALS
    assert counted(bridge, "refused", "unauthorized") == MOST_REFUSALS + 10


async def test_at_debug_level_the_log_has_the_outcomes_that_another_bridge_publishes(two, caplog):
    caplog.set_level(logging.DEBUG, "bridge")
    second = await two.bridge("vm-1", **EACH)
    await second.hear(event_id(two), resource="vm-0")
    assert outcome_line(caplog, "approval.recorded").levelname == "DEBUG"


def seen(bridge):
    """The reason and place of each refusal that is not published, and whether it is a stray."""
    found = [(one.cloudevent.data, one.stray) for one in bridge.runtime.status.refusals.latest()]
    return [(data["reason"], data["position"], stray) for data, stray in found]


async def test_strays_are_shown_to_the_operator(two):
    bridge = await two.bridge(early_grace="0s")
    await bridge.intake.take(Delivery(b"not JSON", position="t/0/3"), "bus")
    await bridge.hear("no-such-event")
    await bridge.intake.settle()
    assert seen(bridge) == [("unknown-event", None, True), ("malformed", "t/0/3", True)]
    assert await bridge.told() == []


async def test_a_refusal_that_another_bridge_publishes_is_shown_too(two):
    first, second = await two.bridge(**EACH), await two.bridge("vm-1", **EACH)
    for bridge in (first, second):
        await bridge.hear(event_id(two))
    assert seen(second) == [("resource-required", None, False)]
    assert seen(first) == []
    assert await first.became() == [("refused", "resource-required")]


async def test_a_kill_before_a_stray_is_acknowledged_loses_only_what_was_shown(two, monkeypatch):
    bridge = await two.bridge()
    await bridge.hear(event_id(two), resource="vm-0")
    vote = await cast_votes(bridge, event_id(two))

    async def killed(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(bridge.journal, "durably", killed)
    message = Delivery(b"not JSON", position="t/0/4", checkpoint=("t/0", "5"))
    with pytest.raises(KeyboardInterrupt):
        await bridge.intake.take(message, "bus")
    again = await two.bridge()
    assert seen(again) == []
    assert await again.journal.run(lambda store: votes_lately(store, 10)) == vote
    await again.intake.take(message, "bus")
    assert seen(again) == [("malformed", "t/0/4", True)]
