"""From votes to Azure: one POST at the right moment and none at a wrong one, despite failures."""

import asyncio
from datetime import datetime, timedelta

import pytest
from support.bridge import cast_votes, deciding, event_id, grant_state, group, plan, reconfigure
from support.until import until

from bridge.approvals.decisions import Decisions
from bridge.approvals.start_requests import StartRequests
from bridge.journal.grants import mark
from bridge.journal.votes import votes

EACH = {"require": "each-resource"}
LONGEST_BACKOFF = timedelta(seconds=5)
NOW = {"takeover_after": "0s"}
EARLY = "0D0C9D4A-0000-4000-8000-000000000001"


# --- the straight road ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2017-03-01", "2020-07-01"])
async def test_a_vote_of_a_pending_event_reaches_azure_and_the_event_starts(two, version):
    key = event_id(two)
    bridge = await two.bridge(source={"api_version": version})
    await bridge.hear(key.lower(), approver="orders", id="a-1")
    await bridge.consider()
    [post] = two.posts()
    assert (post["eventIds"], post["released"], post["vm"], post["status"]) == (
        [key],
        [key],
        "vm-0",
        200,
    )
    [told] = await bridge.told()
    assert told["type"] == "azure.scheduledevents.approval.granted.v1"
    assert told["causationid"] == told["data"]["approvalId"] == "a-1"
    assert told["data"]["postedAt"]
    assert two.world.find("e").status == "Started"
    await bridge.poll()
    [started] = await bridge.told("started")
    assert started["data"]["eventId"] == key
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_a_vote_that_comes_while_a_duty_is_withdrawn_makes_it_due_again(two, monkeypatch):
    key, bridge, act = event_id(two), await two.bridge(), Decisions._act
    await bridge.hear(key, approver="orders")
    reconfigure(bridge, allow=[{"approver": "billing"}])

    async def after_another_vote(self, found):
        await bridge.hear(key, approver="billing")
        await act(self, found)

    monkeypatch.setattr(Decisions, "_act", after_another_vote)
    await bridge.consider()
    assert await grant_state(bridge, key) == "due"
    assert two.posts() == []
    monkeypatch.setattr(Decisions, "_act", act)
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_a_vote_that_lapses_takes_no_duty_with_it_that_another_vote_has_made(
    two, monkeypatch
):
    key, bridge = event_id(two), await two.bridge()
    await bridge.hear(key, approver="orders")
    two.world.update("e", type="Redeploy")
    await bridge.poll()
    await bridge.hear(key, approver="billing")

    async def crash(*_):
        raise asyncio.CancelledError

    monkeypatch.setattr(StartRequests, "tell", crash)
    with pytest.raises(asyncio.CancelledError):
        await bridge.consider()
    assert [vote.approver for vote in await cast_votes(bridge, key)] == ["billing"]
    assert await grant_state(bridge, key) == "due"


async def test_every_vm_must_approve(two):
    bridge = await two.bridge(**EACH)
    await bridge.hear(event_id(two), resource="vm-0", approver="a")
    await bridge.consider()
    assert two.posts() == []
    await bridge.hear(event_id(two), resource="vm-1", approver="b")
    await bridge.consider()
    assert len(two.posts()) == 1
    assert await bridge.became() == [("recorded", None), ("granted", None)]
    [_, told] = await bridge.told()
    assert told["data"]["approver"] == "b"
    assert told["data"]["votes"]["have"] == ["vm-0", "vm-1"]


async def test_what_ran_by_our_approval_is_completed_even_if_its_start_was_missed(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two))
    await bridge.consider()
    two.world.complete("e")
    await bridge.poll()
    assert [one["type"] for one in await bridge.told("completed")] == [
        "azure.scheduledevents.completed.v1"
    ]
    assert await bridge.told("canceled") == []


async def test_the_grant_of_an_earlier_incarnation_does_not_count_for_this_one(two):
    bridge = await two.bridge()
    key = event_id(two)
    two.world.cancel("e")
    await bridge.poll()
    await bridge.journal.run(lambda store: mark(store, [(key, 1)], "granted", (), 0.0))
    plan(two)
    await bridge.poll()
    two.world.cancel("e")
    await bridge.poll()
    assert len(await bridge.told("canceled")) == 2


# --- holds and changes ---------------------------------------------------------------------------


async def test_a_hold_keeps_azure_waiting_until_it_is_released(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two), decision="hold", approver="a", id="1")
    await bridge.hear(event_id(two), approver="b", id="2")
    await bridge.consider()
    assert two.posts() == []
    await bridge.hear(event_id(two), decision="release", approver="a", id="3")
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_a_hold_that_expires_wakes_the_grant(two):
    bridge = await two.bridge(hold_timeout="300ms")
    async with deciding(bridge):
        await bridge.hear(event_id(two), decision="hold", approver="a")
        await bridge.hear(event_id(two), approver="b")
        await until(two.posts)
    [post] = two.posts()
    assert await waited(bridge, post) >= 0.3


async def test_a_hold_that_comes_while_its_approvers_old_vote_lapses_is_kept(two, monkeypatch):
    bridge, key = await two.bridge(), event_id(two)
    await bridge.hear(key, approver="a", id="1")
    two.world.update("e", type="Redeploy")
    await bridge.poll()
    await bridge.hear(key, approver="b", id="2")
    read, meanwhile = bridge.journal.run, ["hold"]

    async def slow(operation):
        found = await read(operation)
        if meanwhile and isinstance(found, list) and found and found[0].what == "lapse":
            await bridge.hear(key, approver="a", decision=meanwhile.pop(), id="3")
        return found

    monkeypatch.setattr(bridge.journal, "run", slow)
    await bridge.consider()
    assert not meanwhile
    await bridge.consider()
    assert two.posts() == []
    assert {(one.approver, one.decision) for one in await cast_votes(bridge, key)} == {
        ("a", "hold"),
        ("b", "approve"),
    }
    assert ("refused", "superseded") not in await bridge.became()


async def test_a_hold_repeated_after_a_release_for_all_vms_holds_again(two):
    bridge, key = await two.bridge(), event_id(two)
    await bridge.hear(key, approver="b", id="1", decision="hold", resource="vm-1")
    await bridge.hear(key, approver="b", id="2", decision="release")
    await bridge.hear(key, approver="b", id="3", decision="hold", resource="vm-1")
    await bridge.hear(key, approver="a", id="4")
    await bridge.consider()
    assert two.posts() == []
    await bridge.hear(key, approver="b", id="5", decision="release")
    await bridge.consider()
    assert len(two.posts()) == 1


@pytest.mark.parametrize("by", [timedelta(), timedelta(hours=-1), timedelta(hours=1)])
async def test_the_last_word_of_an_approver_counts_although_the_clock_was_set(two, by):
    bridge, key = await two.bridge(), event_id(two)
    await bridge.hear(key, approver="b", id="1", decision="hold", resource="vm-0")
    await bridge.hear(key, approver="b", id="2", decision="release")
    bridge.clock.stepped = by
    await bridge.hear(key, approver="b", id="3", decision="hold", resource="vm-1")
    await bridge.hear(key, approver="a", id="4")
    await bridge.consider()
    assert two.posts() == []
    bridge.clock.stepped = 2 * by
    await bridge.hear(key, approver="b", id="5", decision="release")
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_votes_lapse_when_the_event_gets_worse_and_that_is_published_once(two):
    bridge = await two.bridge(**EACH)
    await bridge.hear(event_id(two), resource="vm-0", approver="a", id="1")
    two.world.update("e", type="Redeploy")
    await bridge.poll()
    for _ in range(2):
        await bridge.consider()
    await bridge.hear(event_id(two), resource="vm-1", approver="b", id="2")
    await bridge.consider()
    assert two.posts() == []
    assert await bridge.became() == [
        ("recorded", None),
        ("refused", "superseded"),
        ("recorded", None),
    ]
    two.world.update("e", type="Reboot")
    await bridge.poll()
    await bridge.hear(event_id(two), resource="vm-0", approver="a", id="3")
    await bridge.consider()
    assert len(two.posts()) == 1


@pytest.mark.parametrize("worse", [{"type": "Redeploy"}, {"resources": ["vm-0", "vm-1", "vm-2"]}])
async def test_a_hold_stays_when_the_event_gets_worse(two, worse):
    bridge = await two.bridge()
    key = event_id(two)
    await bridge.hear(key, decision="hold", approver="a", id="1")
    two.world.update("e", **worse)
    await bridge.poll()
    await bridge.hear(key, approver="b", id="2")
    for _ in range(2):
        await bridge.consider()
    assert two.posts() == []
    assert await bridge.became() == [("recorded", None)] * 2
    await bridge.hear(key, decision="release", approver="a", id="3")
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_a_hold_stays_when_its_approver_may_not_vote_on_what_the_event_became(two):
    allow = [{"approver": "a", "event_types": ["Reboot"], "resources": ["vm-*"]}, {"approver": "b"}]
    bridge = await two.bridge(allow=allow)
    key = event_id(two)
    await bridge.hear(key, decision="hold", approver="a", id="1")
    two.world.update("e", type="Redeploy", resources=["vm-0", "vm-1", "db-0"])
    await bridge.poll()
    await bridge.hear(key, approver="b", id="2")
    await bridge.consider()
    assert two.posts() == []
    reconfigure(bridge, allow=allow[1:])
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_a_release_stays_when_the_event_gets_worse(two):
    bridge = await two.bridge()
    key = event_id(two)
    await bridge.hear(key, decision="hold", approver="a", resource="vm-0", id="1")
    await bridge.hear(key, decision="release", approver="a", id="2")
    two.world.update("e", type="Redeploy")
    await bridge.poll()
    await bridge.consider()
    await bridge.hear(key, approver="b", id="3")
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_only_the_leader_publishes_lapsed_votes(two):
    bridge = await two.bridge("vm-1", **EACH)
    await bridge.hear(event_id(two), resource="vm-1")
    two.world.update("e", type="Redeploy")
    await bridge.poll()
    await bridge.consider()
    key = event_id(two)
    assert await bridge.journal.run(lambda store: votes(store, key, 1)) == []
    assert await bridge.told() == []


async def test_a_dry_run_tells_azure_nothing_and_grants_nothing(two):
    bridge = await two.bridge(dry_run=True)
    await bridge.hear(event_id(two))
    await bridge.consider()
    two.world.start("e")
    await bridge.poll()
    await bridge.consider()
    assert two.posts() == []
    assert await bridge.became() == [("recorded", None)]


async def ends_by_reload(two, bridge):
    reconfigure(bridge, dry_run=False)
    return bridge


async def ends_by_restart(two, _):
    return await two.bridge()


ENDS = pytest.mark.parametrize("end", [ends_by_reload, ends_by_restart])


@ENDS
async def test_approvals_from_a_dry_run_lapse_when_it_ends_and_an_equal_one_then_counts(two, end):
    bridge = await two.bridge(dry_run=True)
    key = event_id(two)
    await bridge.hear(key, approver="a", id="1")
    await bridge.consider()
    bridge = await end(two, bridge)
    for _ in range(2):
        await bridge.consider()
    assert two.posts() == []
    assert await bridge.became() == [("recorded", None), ("refused", "superseded")]
    assert "dry run" in (await bridge.told())[-1]["data"]["detail"]
    await bridge.hear(key, approver="a", id="2")
    await bridge.consider()
    assert len(two.posts()) == 1


@ENDS
async def test_a_hold_from_a_dry_run_stays_when_it_ends(two, end):
    bridge = await two.bridge(dry_run=True)
    key = event_id(two)
    await bridge.hear(key, approver="a", decision="hold", id="1")
    bridge = await end(two, bridge)
    await bridge.hear(key, approver="b", id="2")
    await bridge.consider()
    assert two.posts() == []


async def test_an_equal_vote_after_a_dry_run_counts_even_before_the_bridge_decided_again(two):
    bridge = await two.bridge(dry_run=True)
    key = event_id(two)
    await bridge.hear(key, approver="a", id="1")
    reconfigure(bridge, dry_run=False)
    await bridge.hear(key, approver="a", id="2")
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_an_approval_from_before_a_dry_run_counts_again_after_it(two):
    bridge = await two.bridge(**EACH)
    key = event_id(two)
    await bridge.hear(key, approver="a", resource="vm-0", id="1")
    reconfigure(bridge, dry_run=True)
    await bridge.hear(key, approver="a", resource="vm-0", id="2")
    await bridge.consider()
    reconfigure(bridge, dry_run=False)
    await bridge.hear(key, approver="a", resource="vm-1", id="3")
    await bridge.consider()
    assert len(two.posts()) == 1


@ENDS
async def test_an_approval_that_waited_for_its_event_since_a_dry_run_does_not_count(two, end):
    bridge = await two.bridge(dry_run=True)
    await bridge.hear(EARLY, approver="a", id="1")
    bridge = await end(two, bridge)
    plan(two, "late", event_id=EARLY)
    await bridge.poll()
    await bridge.consider()
    assert two.posts() == []
    assert await bridge.became() == [("refused", "superseded")]
    await bridge.hear(EARLY, approver="a", id="2")
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_a_kill_while_the_votes_of_a_dry_run_lapse_publishes_it_once(two, monkeypatch):
    bridge = await two.bridge(dry_run=True)
    await bridge.hear(event_id(two), approver="a", id="1")

    def dies(store, gone, *_, **__):
        with store.transaction() as db:
            db.execute("DELETE FROM vote")
            raise RuntimeError("the process ends here")

    again = await two.bridge()
    with monkeypatch.context() as patch:
        patch.setattr("bridge.approvals.decisions.lapse", dies)
        with pytest.raises(RuntimeError):
            await again.consider()
    again = await two.bridge()
    for _ in range(2):
        await again.consider()
    assert two.posts() == []
    assert await again.became() == [("recorded", None), ("refused", "superseded")]


# --- who acts ------------------------------------------------------------------------------------


async def test_the_second_vm_waits_and_takes_over_when_the_first_is_silent(two):
    second = await two.bridge("vm-1", takeover_after="400ms")
    async with deciding(second):
        await second.hear(event_id(two))
        await until(second.told)
    [post] = two.posts()
    assert post["vm"] == "vm-1"
    assert await waited(second, post) >= 0.4
    assert await second.became() == [("granted", None)]


async def test_the_third_vm_waits_twice_as_long(tmp_path):
    async with group(tmp_path, "vm-0", "vm-1", "vm-2") as three:
        key = plan(three, resources=["vm-0", "vm-1", "vm-2"])
        third = await three.bridge("vm-2", takeover_after="100s")
        await third.hear(key)
        for by, posts in ((0, 0), (190, 0), (200, 1)):
            third.clock.ahead = timedelta(seconds=by)
            await third.consider()
            assert len(three.posts()) == posts


async def test_the_second_vm_waits_also_after_a_hold_that_became_an_approval(two):
    second = await two.bridge("vm-1", takeover_after="1s")
    key = event_id(two)
    await second.hear(key, approver="a")
    await second.hear(key, approver="b", decision="hold")
    await asyncio.sleep(1)
    await second.hear(key, approver="b")
    await second.consider()
    assert two.posts() == []


async def test_the_leader_does_not_wait_for_a_clock_that_was_set_back(two):
    bridge = await two.bridge()
    bridge.clock.ahead = timedelta(hours=1)
    await bridge.hear(event_id(two))
    bridge.clock.ahead = timedelta()
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_the_second_vm_settles_silently_when_the_first_has_acted(two):
    first = await two.bridge("vm-0")
    second = await two.bridge("vm-1", takeover_after="1s")
    for bridge in (first, second):
        await bridge.hear(event_id(two), id="a-1")
        await bridge.consider()
    assert [post["vm"] for post in two.posts()] == ["vm-0"]
    await second.poll()
    await second.consider()
    assert await second.told() == []


async def test_two_bridges_that_both_grant_publish_one_id(two):
    plan(two, "slow", starts_after_approval="1h")
    bridges = [await two.bridge(name, **NOW) for name in ("vm-0", "vm-1")]
    for bridge in bridges:
        await bridge.hear(event_id(two, "slow"))
        await bridge.consider()
    assert [post["status"] for post in two.posts()] == [200, 200]
    ids = {told["id"] for bridge in bridges for told in await bridge.told()}
    assert len(ids) == 1


async def test_for_terminate_no_bridge_waits_for_a_leader(two):
    key = plan(two, "t", type="Terminate")
    second = await two.bridge("vm-1")
    await second.hear(key)
    await second.consider()
    assert [post["vm"] for post in two.posts()] == ["vm-1"]


async def test_nothing_is_posted_for_an_event_of_other_vms(two):
    key = plan(two, "theirs", resources=["vm-1"])
    first = await two.bridge("vm-0", **NOW)
    await first.hear(key)
    await first.consider()
    assert two.posts() == []


async def test_a_bridge_that_watches_all_vms_acts_last(two):
    key = plan(two, "theirs", resources=["vm-1"])
    first = await two.bridge("vm-0", source={"scope": "all"}, takeover_after="300ms")
    async with deciding(first):
        await first.hear(key)
        await until(first.told)
    [post] = two.posts()
    assert await waited(first, post) >= 0.3


async def test_a_vote_taken_before_the_vms_name_is_known_counts_once_it_is(two):
    two.world.fault("status", paths=["instance"], status=500)
    bridge = await two.bridge()
    assert bridge.runtime.identity.vm_name is None
    await bridge.hear(event_id(two))
    await bridge.consider()
    assert two.posts() == []
    two.world.clear_faults()
    bridge.runtime.identity._ask_at = 0.0
    await bridge.poll()
    await bridge.consider()
    assert len(two.posts()) == 1


# --- too late ------------------------------------------------------------------------------------


async def test_nothing_is_posted_after_the_start_and_a_bridge_that_was_not_due_publishes_nothing(
    two,
):
    bridge = await two.bridge(**EACH)
    await bridge.hear(event_id(two), resource="vm-0")
    two.world.start("e")
    await bridge.poll()
    await bridge.hear(event_id(two), resource="vm-1")
    await bridge.consider()
    assert two.posts() == []
    assert await bridge.became() == [("recorded", None), ("refused", "expired")]


async def test_an_event_that_ends_between_enough_votes_and_the_decision_is_published_as_failed(two):
    bridge, follower = await two.bridge(), await two.bridge("vm-1")
    for one in (bridge, follower):
        await one.hear(event_id(two))
    two.world.cancel("e")
    again, follower_again = await two.bridge(), await two.bridge("vm-1")
    for one in (again, follower_again):
        await one.consider()
    assert await again.became() == [("failed", None)]
    assert await follower_again.became() == []


async def test_a_hold_before_the_first_decision_means_no_failure(two):
    bridge = await two.bridge()
    await bridge.hear(event_id(two), approver="a")
    await bridge.hear(event_id(two), approver="b", decision="hold")
    two.world.cancel("e")
    await bridge.poll()
    await bridge.consider()
    assert await bridge.became() == [("recorded", None)]


async def test_a_bridge_stays_due_by_votes_that_did_not_lapse(two):
    bridge = await two.bridge()
    key = event_id(two)
    two.world.fault("status", methods=["POST"], status=500)
    await bridge.hear(key, approver="a")
    await bridge.consider()
    two.world.update("e", type="Redeploy")
    await bridge.poll()
    await bridge.hear(key, approver="b")
    bridge.clock.ahead += LONGEST_BACKOFF
    await bridge.consider()
    assert await grant_state(bridge, key) == "due"
    two.world.cancel("e")
    await bridge.poll()
    await bridge.consider()
    assert await bridge.became() == [("refused", "superseded"), ("failed", None)]


async def test_a_bridge_is_no_longer_due_when_the_event_leaves_its_vm(two):
    bridge = await two.bridge()
    key = event_id(two)
    two.world.fault("status", methods=["POST"], status=500)
    await bridge.hear(key)
    await bridge.consider()
    two.world.update("e", resources=["vm-1"])
    await bridge.poll()
    await bridge.consider()
    assert await grant_state(bridge, key) is None


async def test_an_event_that_is_out_of_sight_for_a_while_is_left_alone(two):
    bridge = await two.bridge()
    key = event_id(two)
    bridge.runtime.boot_id = "boot-2"
    del two.world.entries[key]
    await bridge.poll()
    assert bridge.poller._state.tracked[key].missing_since
    await bridge.hear(key)
    await bridge.consider()
    assert two.posts() == []
    assert await grant_state(bridge, key) is None


async def waited(bridge, post) -> float:
    """Seconds from the first vote to the POST; the truth has milliseconds."""
    [key] = post["eventIds"]
    cast = await bridge.journal.run(lambda store: votes(store, key, 1))
    posted = datetime.fromisoformat(post["at"]) + timedelta(milliseconds=1)
    return (posted - min(vote.at for vote in cast)).total_seconds()
