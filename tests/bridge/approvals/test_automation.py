"""What the bridge does on its own: votes by rule, and reminders, each once."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from support.ballots import delivery
from support.bridge import group, reconfigure

from bridge.journal.grants import reminded
from bridge.journal.votes import votes

FREEZE = {"type": "Freeze", "notice": "1h", "duration": 5, "started_for": None}


@pytest.fixture
async def two(tmp_path):
    async with group(tmp_path, "vm-0", "vm-1") as made:
        yield made


def plan(made, name="e", **more):
    both = {"resources": ["vm-0", "vm-1"]}
    return made.world.create(name=name, **{**FREEZE, **both, **more}).event.event_id


async def cast(bridge, key):
    found = await bridge.journal.run(lambda store: votes(store, key, 1))
    return [(vote.approver, vote.resource, vote.verified) for vote in found]


# --- votes by rule -------------------------------------------------------------------------------


async def test_what_a_rule_approves_is_posted_without_a_vote(two):
    key = plan(two)
    plan(two, "long", duration=60)
    bridge = await two.bridge(auto=[{"event_type": "Freeze", "max_duration": "10s"}])
    for _ in range(2):
        await bridge.consider()
    assert [post["eventIds"] for post in two.posts()] == [[key]]
    [told] = await bridge.told()
    assert (told["data"]["approver"], told["data"]["via"], told["data"]["verified"]) == (
        "auto",
        "auto",
        True,
    )
    assert await cast(bridge, key) == [("auto", "vm-0", True)]


async def test_a_rule_votes_only_for_this_vm_unless_it_covers_all(two):
    key = plan(two)
    rule = {"event_type": "Freeze"}
    bridge = await two.bridge(require="each-resource", auto=[rule])
    await bridge.consider()
    assert two.posts() == []
    assert await bridge.became() == [("recorded", None)]
    await bridge.hear(key, resource="vm-1")
    await bridge.consider()
    assert len(two.posts()) == 1
    other = plan(two, "f")
    bridge = await two.bridge("vm-1", require="each-resource", takeover_after="0s", auto=[{**rule, "all_resources": True}])  # fmt: skip
    await bridge.consider()
    assert two.posts()[-1]["eventIds"] == [other]


async def test_a_vote_by_rule_does_not_override_a_hold(two):
    key = plan(two)
    bridge = await two.bridge(auto=[{"event_type": "Freeze"}])
    await bridge.hear(key, decision="hold", approver="a", id="1")
    await bridge.consider()
    assert two.posts() == []
    await bridge.hear(key, decision="release", approver="a", id="2")
    await bridge.consider()
    assert len(two.posts()) == 1


async def test_a_vote_by_rule_lapses_with_its_state_and_is_cast_again(two):
    key = plan(two)
    bridge = await two.bridge(auto=[{"event_type": "Freeze", "max_duration": "10s"}], dry_run=True)
    await bridge.consider()
    two.world.update("e", duration=60)
    await bridge.poll()
    reconfigure(bridge, dry_run=False)
    await bridge.consider()
    assert two.posts() == []
    two.world.update("e", duration=5)
    await bridge.poll()
    await bridge.consider()
    assert [post["eventIds"] for post in two.posts()] == [[key]]


@pytest.mark.parametrize("restart", [True, False])
async def test_a_rule_votes_again_when_a_dry_run_ends(two, restart):
    key = plan(two)
    rules = {"auto": [{"event_type": "Freeze"}]}
    bridge = await two.bridge(**rules, dry_run=True)
    await bridge.consider()
    if restart:
        bridge = await two.bridge(**rules)
    else:
        reconfigure(bridge, dry_run=False)
    await bridge.consider()
    assert [post["eventIds"] for post in two.posts()] == [[key]]
    assert await bridge.became() == [("recorded", None), ("granted", None)]


async def test_no_rule_votes_before_the_vms_name_is_known(two):
    plan(two)
    two.world.fault("status", paths=["instance"], status=500)
    bridge = await two.bridge(auto=[{"event_type": "*"}])
    await bridge.consider()
    assert two.posts() == []
    assert await bridge.told() == []


async def test_events_that_come_together_are_posted_together(two):
    keys = {plan(two, "e"), plan(two, "f"), plan(two, "g")}
    bridge = await two.bridge(auto=[{"event_type": "Freeze"}])
    await bridge.consider()
    [post] = two.posts()
    assert set(post["eventIds"]) == keys
    assert len(await bridge.told("approval.granted")) == 3


# --- reminders -----------------------------------------------------------------------------------


async def long_ago(bridge, hours=5):
    """Make all pending events look as if they were announced that long ago."""
    state = await bridge.journal.load()
    since = datetime.now(UTC) - timedelta(hours=hours)
    tracked = {key: replace(known, since=since) for key, known in state.tracked.items()}
    await bridge.journal.commit(replace(state, tracked=tracked), [], time.time())


@pytest.mark.parametrize("who", [{"approver": "auto"}, {"approver": "sink:drain"}])
async def test_nobody_votes_under_a_name_of_the_bridge_itself(two, who):
    """Otherwise a rule would replace the hold that somebody has under its name."""
    key = plan(two, resources=["vm-0"])
    bridge = await two.bridge(require="any")
    await bridge.hear(key, decision="hold", resource="vm-0", **who)
    assert await bridge.became() == [("refused", "unauthorized")]
    [local] = await bridge.intake.take_local(delivery(key), "http", who["approver"])
    assert (local.outcome, local.reason) == ("refused", "unauthorized")
    await bridge.consider()
    assert two.posts() == []


async def test_a_reminder_says_that_nobody_has_approved(two):
    key = plan(two)
    bridge = await two.bridge(require="any", remind=["3h"])
    await long_ago(bridge)
    await bridge.hear(key, decision="hold", approver="a", id="1")
    await bridge.consider()
    [told] = await bridge.told("approval.due")
    assert told["data"]["detail"] == (
        "Less than 3h before notBefore; nobody has approved; held by: a."
    )


async def test_each_reminder_names_who_is_missing_once_even_across_restarts(two):
    key = plan(two)
    for remind in (["3h"], ["3h"], ["3h", "2h", "1m"]):
        bridge = await two.bridge(require="each-resource", remind=remind)
        await long_ago(bridge)
        await bridge.hear(key, resource="vm-0", id="1")
        for _ in range(2):
            await bridge.consider()
    told = await bridge.told("approval.due")
    assert len({one["id"] for one in told}) == len(told) == 2
    data = told[0]["data"]
    assert data["votes"] == {"have": ["vm-0"], "missing": ["vm-1"], "holds": []}
    assert (data["approvalId"], data["approver"], data["via"]) == (None, None, "remind")
    assert data["detail"] == "Less than 3h before notBefore; missing: vm-1."
    assert "causationid" not in told[0]
    assert await bridge.journal.run(lambda store: reminded(store, (key, 1))) == {"3h", "2h"}


async def test_only_the_latest_of_several_passed_reminders_is_published(two):
    plan(two)
    bridge = await two.bridge(remind=["2h", "3h", "4h"])
    await long_ago(bridge)
    await bridge.consider()
    [told] = await bridge.told("approval.due")
    assert "2h" in told["data"]["detail"]


async def test_a_reminder_that_is_still_to_come_wakes_the_bridge(two):
    key = plan(two)
    bridge = await two.bridge(remind=["10m", "20m"])
    due = (await bridge.journal.load()).tracked[key].event.not_before
    moment = await bridge.service.decisions.automation.look(await bridge.journal.load())
    assert moment == due - timedelta(minutes=20)
    assert await bridge.told("approval.due") == []


async def test_an_event_that_names_the_year_one_is_not_reminded_of(two):
    """.NET writes the year 1 for "no time"."""
    key = plan(two)
    bridge = await two.bridge(remind=["5m"])
    state = await bridge.journal.load()
    known = state.tracked[key]
    event = replace(known.event, not_before=datetime.min.replace(tzinfo=UTC))
    state = replace(state, tracked={key: replace(known, event=event)})
    assert await bridge.service.decisions.automation.look(state) is None
    assert await bridge.told("approval.due") == []


async def test_what_was_announced_too_late_for_a_reminder_is_not_reminded_of(two):
    plan(two, notice="30s")
    bridge = await two.bridge(remind=["5m", "1m"])
    await bridge.consider()
    assert await bridge.told("approval.due") == []


async def test_only_the_leader_reminds_and_only_while_the_policy_is_not_satisfied(two):
    key = plan(two)
    first = await two.bridge("vm-0", remind=["2h"], dry_run=True)
    second = await two.bridge("vm-1", remind=["2h"])
    await first.hear(key)
    for bridge in (first, second):
        await long_ago(bridge)
        await bridge.consider()
        assert await bridge.told("approval.due") == []


async def test_holders_are_named_too(two):
    key = plan(two)
    bridge = await two.bridge(remind=["2h"])
    await long_ago(bridge)
    await bridge.hear(key, approver="a", id="1")
    await bridge.hear(key, approver="b", decision="hold", id="2")
    await bridge.consider()
    [told] = await bridge.told("approval.due")
    assert told["data"]["detail"] == "Less than 2h before notBefore; held by: b."
