"""Votes sent directly to this bridge: always answered, POSTed immediately, even if it does not lead."""

import json

import pytest
from support.bridge import cast_votes, deciding, event_id, plan
from support.signing import Signer

from bridge.approvals.intake import Unauthorized
from bridge.common.errors import Unavailable
from bridge.journal.votes import early
from bridge.metadata.answers import SourceProblem
from bridge.plugins import Delivery
from bridge.policy.message import MalformedApproval
from bridge.policy.votes import CONTROL, HTTP

ORDERS = Signer("orders")
EACH = {"require": "each-resource"}


async def say(bridge, key=None, via=CONTROL, identity="uid 0", **said):
    body = json.dumps({**({"eventId": key} if key else {}), **said}).encode()
    return await bridge.intake.take_local(Delivery(body), via, identity)


async def one(bridge, key, **said):
    bridge.intake.patience = 0.0
    [found] = await say(bridge, key, **said)
    return found.outcome, found.reason


async def test_the_caller_gets_azures_answer(two):
    bridge = await two.bridge()
    async with deciding(bridge):
        bridge.intake.patience = 20.0
        [found] = await say(bridge, event_id(two).lower(), id="a-1")
    assert (found.event_id, found.outcome, found.approval_id) == (event_id(two), "granted", "a-1")
    assert len(two.posts()) == 1
    [vote] = await cast_votes(bridge, event_id(two))
    assert (vote.approver, vote.verified, vote.via, vote.local) == ("uid 0", True, "control", True)


async def test_the_bridge_that_took_a_local_vote_acts_and_publishes_without_leading(two):
    second = await two.bridge("vm-1", **EACH)
    assert await one(second, event_id(two), resource="vm-1") == ("recorded", None)
    assert await second.became() == [("recorded", None)]
    assert await one(second, event_id(two), resource="vm-0") == ("pending", None)
    await second.consider()
    assert [post["vm"] for post in two.posts()] == ["vm-1"]
    assert await second.became() == [("recorded", None), ("granted", None)]


async def test_votes_from_a_bus_still_wait_for_the_leader(two):
    second = await two.bridge("vm-1", takeover_after="1h")
    await second.hear(event_id(two))
    await second.consider()
    assert two.posts() == []
    assert await one(second, event_id(two)) == ("pending", None)
    await second.consider()
    assert len(two.posts()) == 1


async def test_what_does_not_count_is_answered_and_may_be_tried_again_under_its_id(two):
    bridge = await two.bridge(**EACH)
    assert await one(bridge, event_id(two), id="a-1") == ("refused", "resource-required")
    assert await one(bridge, event_id(two), id="a-1", resource="vm-0") == ("recorded", None)
    assert await one(bridge, event_id(two), id="a-2", resource="x") == ("refused", "not-approvable")


async def test_an_event_of_other_vms_is_refused_and_an_unknown_one_waits(two):
    two.world.create(name="theirs", type="Freeze", notice="1h", resources=["vm-1"])
    bridge = await two.bridge()
    assert await one(bridge, event_id(two, "theirs")) == ("refused", "not-approvable")
    assert await one(bridge, "unknown", id="a-1") == ("pending", "early")
    assert await one(bridge, "unknown", id="a-1") == ("pending", "early")
    assert len(await bridge.journal.run(early)) == 1


async def test_an_early_local_vote_is_posted_as_soon_as_its_event_appears(two):
    second = await two.bridge("vm-1", takeover_after="1h")
    key = two.world.event_id("soon")
    assert await one(second, key) == ("pending", "early")
    two.world.create(name="soon", type="Reboot", notice="1h", resources=["vm-0", "vm-1"])
    await second.poll()
    await second.consider()
    assert [post["eventIds"] for post in two.posts()] == [[key]]


async def test_what_is_over_or_has_started_has_expired(two):
    bridge = await two.bridge()
    two.world.start("e")
    await bridge.poll()
    assert await one(bridge, event_id(two)) == ("refused", "expired")


async def test_the_same_message_gets_the_same_answer_and_does_nothing_twice(two):
    bridge = await two.bridge(**EACH)
    for _ in range(2):
        assert await one(bridge, event_id(two), resource="vm-0", id="a-1") == ("recorded", None)
    assert len(await bridge.told()) == 1
    assert await one(bridge, event_id(two), resource="vm-0", decision="hold", id="a-2") == (
        "recorded",
        None,
    )
    assert await one(bridge, event_id(two), resource="vm-0", id="a-1") == ("refused", "replayed")
    assert [vote.decision for vote in await cast_votes(bridge, event_id(two))] == ["hold"]


async def test_without_an_id_each_message_is_a_new_one(two):
    bridge = await two.bridge(dry_run=True)
    for decision in ("approve", "hold", "approve"):
        assert (await one(bridge, event_id(two), decision=decision))[0] == "recorded"
    assert [vote.decision for vote in await cast_votes(bridge, event_id(two))] == ["approve"]


@pytest.mark.parametrize(
    ("resources", "decision", "elsewhere"),
    [
        (["vm-0", "vm-1"], "hold", True),
        (["vm-0"], "hold", False),
        (["vm-0", "vm-1"], "approve", False),
    ],
)
async def test_a_local_hold_says_that_other_bridges_do_not_know_of_it(
    two, resources, decision, elsewhere
):
    bridge = await two.bridge(require="each-resource")
    key = plan(two, "other", resources=resources)
    await bridge.poll()
    said = {"eventId": key, "resource": "vm-0", "decision": decision}
    [told] = await say(bridge, **said)
    warning = "Other bridges do not know of this hold, and one of them may tell Azure."
    assert (warning in (told.detail or "")) is elsewhere
    recorded = [one["data"]["detail"] or "" for one in await bridge.told("approval.recorded")]
    assert any(warning in one for one in recorded) is elsewhere


async def test_a_hold_from_a_bus_is_known_to_all_bridges(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two), decision="hold")
    [told] = await bridge.told("approval.recorded")
    assert (
        told["data"]["detail"] == "A hold does not stop Azure: the event still starts at notBefore."
    )


async def test_a_hold_after_the_grant_is_refused_and_an_approval_is_already_granted(two):
    two.world.create(name="slow", type="Reboot", notice="1h", starts_after_approval="1h")
    bridge = await two.bridge()
    key = event_id(two, "slow")
    await one(bridge, key)
    await bridge.consider()
    assert await one(bridge, key) == ("granted", None)
    assert await one(bridge, key, decision="hold") == ("refused", "not-approvable")


async def test_a_caller_waits_for_azure_only_for_a_limited_time(two):
    bridge = await two.bridge()

    async def post(*_):
        return SourceProblem("server-error", "No.", status=500)

    bridge.azure.approve = post
    async with deciding(bridge):
        bridge.intake.patience = 0.1
        [found] = await say(bridge, event_id(two))
    assert found.outcome == "pending"


async def test_several_events_are_answered_one_by_one(two):
    two.world.create(name="f", type="Freeze", notice="1h")
    bridge = await two.bridge(**EACH)
    bridge.intake.patience = 0.0
    ids = [event_id(two), event_id(two, "f")]
    found = await say(bridge, StartRequests=[{"EventId": key} for key in ids])
    assert [(each.event_id, each.outcome) for each in found] == [
        (ids[0], "refused"),
        (ids[1], "pending"),
    ]


# --- who it is -----------------------------------------------------------------------------------


async def test_a_caller_can_only_vote_under_its_own_name(two):
    bridge = await two.bridge()
    assert await one(bridge, event_id(two), approver="root") == ("refused", "unauthorized")
    assert await one(bridge, event_id(two), approver="uid 0") == ("pending", None)


async def test_a_caller_who_is_not_listed_has_no_rights_on_the_control_socket_either(two):
    bridge = await two.bridge(allow=[{"approver": "uid 0", "decisions": ["hold"]}])
    assert await one(bridge, event_id(two)) == ("refused", "unauthorized")
    assert await one(bridge, event_id(two), decision="hold") == ("recorded", None)
    assert await one(bridge, event_id(two), identity="uid 7") == ("refused", "unauthorized")


async def test_a_token_is_the_approver_that_names_it(two):
    bridge = await two.bridge()
    asked = bridge.runtime.config.approvals
    allow = type(asked).model_validate({"allow": [{"approver": "ops", "token": "t-1"}]}).allow
    new = asked.model_copy(update={"allow": allow})
    bridge.runtime.config = bridge.runtime.config.model_copy(update={"approvals": new})
    assert await one(bridge, event_id(two), via=HTTP, identity="t-1") == ("pending", None)
    assert [vote.approver for vote in await cast_votes(bridge, event_id(two))] == ["ops"]
    assert await one(bridge, event_id(two), via=HTTP, identity="t-2") == ("refused", "unauthorized")


async def test_a_signature_is_enough_and_takes_precedence_over_a_token(two):
    bridge = await two.bridge(allow=[ORDERS.entry()], dry_run=True)
    for name, identity in (("w-1", None), ("w-2", "t-1")):
        delivery = ORDERS.delivery(event_id(two), name=name)
        [found] = await bridge.intake.take_local(delivery, HTTP, identity)
        assert found.outcome == "recorded"
    assert [vote.approver for vote in await cast_votes(bridge, event_id(two))] == ["orders"]


@pytest.mark.parametrize("age", [301, -400])
async def test_over_http_a_signature_is_five_minutes_old_at_most(two, age):
    bridge = await two.bridge(allow=[ORDERS.entry()])
    await bridge.journal.run(lambda store: store.remember(born="2020-01-01T00:00:00+00:00"))
    delivery = ORDERS.delivery(event_id(two), age=age)
    [found] = await bridge.intake.take_local(delivery, HTTP, None)
    assert (found.outcome, found.reason) == ("refused", "unauthorized")
    fresh = ORDERS.delivery(event_id(two), name="w-2", age=290)
    bridge.intake.patience = 0.0
    [found] = await bridge.intake.take_local(fresh, HTTP, None)
    assert found.outcome == "pending"


async def test_an_unverified_caller_is_refused(two):
    bridge = await two.bridge(allow=[ORDERS.entry()])
    stranger = Signer("orders", seed=9).delivery(event_id(two))
    for delivery in (Delivery(b'{"eventId": "x"}'), stranger):
        with pytest.raises(Unauthorized):
            await bridge.intake.take_local(delivery, HTTP, None)
    with pytest.raises(MalformedApproval):
        await bridge.intake.take_local(Delivery(b"?"), CONTROL, "uid 0")
    assert await cast_votes(bridge, event_id(two)) == []


async def test_nothing_is_taken_while_the_journal_cannot_be_written(two):
    bridge = await two.bridge()
    bridge.journal._store.connection.execute("PRAGMA query_only = ON")
    for _ in range(2):
        with pytest.raises(Unavailable):
            await say(bridge, event_id(two))
    assert two.posts() == []
