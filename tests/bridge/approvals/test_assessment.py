"""Whether an approval counts, waits or is refused, and the answer to its sender."""

import pytest
from support.bridge import cast_votes, counted, event_id

from bridge.approvals.assessment import MOST_WAITING
from bridge.journal.grants import mark
from bridge.journal.votes import early

EACH = {"require": "each-resource"}


async def test_the_deciding_vote_is_not_published_as_recorded_because_a_grant_follows(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two))
    assert await bridge.told() == []
    assert len(await cast_votes(bridge, event_id(two))) == 1


async def test_a_dry_run_says_that_it_would_grant(two):
    bridge = await two.bridge(dry_run=True)
    await bridge.hear(event_id(two))
    [told] = await bridge.told()
    assert (told["data"]["dryRun"], told["data"]["wouldGrant"]) == (True, True)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({}, "resource-required"),
        ({"resource": "elsewhere"}, "not-approvable"),
        ({"resource": "vm-0", "approver": "b", "_identity": "a"}, "unauthorized"),
    ],
)
async def test_what_cannot_count_is_refused_with_its_reason(two, said, reason):
    bridge = await two.bridge(**EACH)
    await bridge.hear(event_id(two), **said)
    assert await bridge.became() == [("refused", reason)]
    assert await cast_votes(bridge, event_id(two)) == []


async def test_what_the_transport_proves_is_the_approver(two):
    bridge = await two.bridge(**EACH)
    await bridge.hear(event_id(two), resource="vm-0", _identity="cn=orders")
    [vote] = await cast_votes(bridge, event_id(two))
    assert (vote.approver, vote.verified) == ("cn=orders", True)


async def test_a_vote_for_what_has_started_comes_too_late(two):
    bridge = await two.bridge(**EACH)
    two.world.start("e")
    await bridge.poll()
    await bridge.hear(event_id(two), resource="vm-0")
    assert await bridge.became() == [("refused", "expired")]


async def test_a_vote_for_what_is_over_is_a_stray(two):
    bridge = await two.bridge(answer_strays=True)
    two.world.cancel("e")
    key = bridge.poller._state.tracked.keys()
    [key] = key
    await bridge.poll()
    await bridge.hear(key)
    assert await bridge.became() == [("refused", "expired")]


async def test_a_hold_says_that_azure_will_not_wait(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two), decision="hold")
    [told] = await bridge.told()
    assert told["data"]["votes"]["holds"] == ["bus"]
    assert told["data"]["detail"] == (
        "A hold does not stop Azure: the event still starts at notBefore."
    )


async def test_a_hold_after_the_grant_is_refused_and_an_approval_gets_no_answer(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two))
    await bridge.consider()
    await bridge.hear(event_id(two), decision="hold", approver="late")
    await bridge.hear(event_id(two), approver="later")
    assert await bridge.became() == [("granted", None), ("refused", "not-approvable")]


async def test_an_equal_vote_changes_nothing_and_keeps_its_time(two):
    bridge = await two.bridge(**EACH)
    await bridge.hear(event_id(two), resource="vm-0", id="a-1")
    before = await cast_votes(bridge, event_id(two))
    await bridge.hear(event_id(two), resource="vm-0", id="a-2")
    assert await cast_votes(bridge, event_id(two)) == before
    assert len(await bridge.told()) == 1
    assert counted(bridge, "dropped", "unchanged") == 1


async def test_a_later_vote_of_the_same_voter_replaces_the_earlier_one(two):
    bridge = await two.bridge(**EACH)
    for number, decision in enumerate(["approve", "hold", "release"]):
        await bridge.hear(
            event_id(two), resource="vm-0", decision=decision, _position=f"t/0/{number}"
        )
    assert [vote.decision for vote in await cast_votes(bridge, event_id(two))] == ["release"]
    assert len(await bridge.told()) == 3


async def test_an_older_offset_never_replaces_a_newer_one(two):
    bridge = await two.bridge(**EACH)
    for offset, decision in ((9, "hold"), (8, "approve")):
        place = {"_position": f"t/0/{offset}", "_log": "bus@cluster/t/0"}
        await bridge.hear(event_id(two), resource="vm-0", decision=decision, **place)
    assert [vote.decision for vote in await cast_votes(bridge, event_id(two))] == ["hold"]
    assert counted(bridge, "dropped", "older") == 1


async def test_the_number_of_waiting_approvals_is_limited(two, monkeypatch):
    monkeypatch.setattr("bridge.approvals.assessment.MOST_WAITING", 3)
    assert MOST_WAITING == 1000
    bridge = await two.bridge()
    for number in range(5):
        await bridge.hear(f"never-{number}")
    assert len(await bridge.journal.run(early)) == 3
    assert counted(bridge, "refused", "rate-limited") == 2


async def test_a_grant_of_an_earlier_incarnation_does_not_count_for_the_new_one(two):
    bridge = await two.bridge(**EACH)
    key = event_id(two)
    await bridge.journal.run(lambda store: mark(store, [(key, 1)], "granted", (), 0.0))
    two.world.cancel("e")
    await bridge.poll()
    two.world.create(name="e", type="Reboot", notice="1h", resources=["vm-0", "vm-1"])
    await bridge.poll()
    await bridge.hear(key, resource="vm-0", decision="hold")
    assert [vote.decision for vote in await cast_votes(bridge, key, 2)] == ["hold"]
