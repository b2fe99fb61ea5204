"""Which state of the event an approval is about: the one that its sender saw, never a later one."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from support.bridge import cast_votes, counted, event_id, group, plan
from support.signing import Signer

from bridge.approvals.publisher import MOST_REFUSALS
from bridge.core.cloudevent import CloudEvent
from bridge.core.ids import digest
from bridge.journal.votes import early
from bridge.plugins import Delivery
from bridge.policy.votes import HTTP

ORDERS = Signer("orders")
SIGNED = {"allow": [ORDERS.entry()]}
MINUTE = timedelta(minutes=1)
LONG_AGO = "2020-01-01T00:00:00+00:00"


@pytest.fixture
async def one(tmp_path):
    """Two VMs, and a Freeze of the first one, which its bridge saw appear."""
    async with group(tmp_path, "vm-0", "vm-1") as made:
        yield made


async def watching(made, **approvals):
    """A bridge that was polling when the Freeze appeared, half an hour ago."""
    bridge = await made.bridge(**approvals)
    await bridge.journal.run(lambda store: store.remember(born=LONG_AGO))
    plan(made, type="Freeze", resources=["vm-0"], notice="3h")
    await bridge.poll()
    await passes(bridge, 30)
    return bridge


async def passes(bridge, minutes):
    """All that the bridge has seen so far, it saw that much earlier."""
    state, by = await bridge.journal.load(), minutes * MINUTE
    tracked = {key: earlier(known, by) for key, known in state.tracked.items()}
    ended = {key: end._replace(at=end.at - by) for key, end in state.ended.items()}
    bridge.poller._state = replace(state, tracked=tracked, ended=ended)
    await bridge.journal.commit(bridge.poller._state, [], 0.0)


def earlier(known, by):
    past = tuple(replace(one, since=one.since - by) for one in known.past)
    return replace(known, since=known.since - by, past=past)


async def worsens(made, bridge, **changes):
    """It becomes a Terminate of both VMs, and another half hour passes."""
    made.world.update("e", **(changes or {"type": "Terminate", "resources": ["vm-0", "vm-1"]}))
    await bridge.poll()
    await passes(bridge, 30)


def ago(minutes):
    return datetime.now(UTC) - minutes * MINUTE


async def state(bridge, made):
    return digest((await bridge.journal.load()).tracked[event_id(made)].event)


async def announced(bridge, kind="scheduled"):
    [told] = await bridge.told(kind)
    return told


# --- without seen: the time tells ---------------------------------------------------------------


async def test_what_was_signed_before_the_event_got_worse_is_superseded(one):
    bridge = await watching(one, **SIGNED)
    await worsens(one, bridge)
    await bridge.intake.take(ORDERS.delivery(event_id(one), age=40 * 60), "bus", must_sign=True)
    await bridge.consider()
    assert (one.posts(), await bridge.became()) == ([], [("refused", "superseded")])


async def test_what_was_published_before_the_event_got_worse_is_superseded(one):
    bridge = await watching(one)
    await worsens(one, bridge)
    await bridge.hear(event_id(one), _recorded=ago(40))
    await bridge.consider()
    assert (one.posts(), await bridge.became()) == ([], [("refused", "superseded")])


async def test_what_was_given_after_the_event_got_worse_counts(one):
    bridge = await watching(one, **SIGNED)
    await worsens(one, bridge)
    await bridge.intake.take(ORDERS.delivery(event_id(one), age=20 * 60), "bus", must_sign=True)
    [vote] = await cast_votes(bridge, event_id(one))
    assert vote.about.event_type == "Terminate"


async def test_what_got_worse_and_better_again_does_not_matter(one):
    bridge = await watching(one)
    await worsens(one, bridge)
    one.world.update("e", type="Freeze", resources=["vm-0"])
    await bridge.poll()
    await bridge.hear(event_id(one), _recorded=ago(40))
    await bridge.consider()
    assert len(one.posts()) == 1


async def test_a_record_time_in_the_future_is_no_later_than_the_arrival(one):
    bridge = await watching(one, dry_run=True)
    await bridge.hear(event_id(one), _recorded=ago(-10))
    await worsens(one, bridge)
    await bridge.consider()
    assert await bridge.became() == [("recorded", None), ("refused", "superseded")]


async def test_a_record_time_counts_though_our_clock_is_behind(one):
    bridge = await watching(one)
    one.world.update("e", type="Terminate")
    bridge.clock.ahead = -timedelta(hours=1)
    await bridge.poll()
    await passes(bridge, 2)
    await bridge.hear(event_id(one), _recorded=ago(5), _log="bus/topic/0")
    await bridge.consider()
    assert (one.posts(), await bridge.became()) == ([], [("refused", "superseded")])


async def test_a_hold_from_before_the_event_got_worse_still_counts(one):
    bridge = await watching(one)
    await worsens(one, bridge)
    await bridge.hear(event_id(one), decision="hold", _recorded=ago(40))
    assert [vote.decision for vote in await cast_votes(bridge, event_id(one))] == ["hold"]


async def test_published_while_the_bridge_was_down_it_is_about_what_the_bridge_knew(one):
    await watching(one)
    one.world.update("e", type="Reboot")
    restarted = await one.bridge()
    await restarted.hear(event_id(one), _recorded=ago(1))
    await restarted.consider()
    assert (one.posts(), await restarted.became()) == ([], [("refused", "superseded")])


async def test_published_before_the_bridge_first_saw_the_event_it_is_about_nothing_known(one):
    bridge = await one.bridge()
    await bridge.journal.run(lambda store: store.remember(born=LONG_AGO))
    plan(one, type="Terminate", resources=["vm-0"])
    restarted = await one.bridge()
    await restarted.hear(event_id(one), _recorded=ago(1))
    await restarted.consider()
    assert (one.posts(), await restarted.became()) == ([], [("refused", "superseded")])
    await restarted.hear(event_id(one), seen=await state(restarted, one), _recorded=ago(1))
    await restarted.consider()
    assert len(one.posts()) == 1


# --- with seen ----------------------------------------------------------------------------------


async def test_seen_names_the_state_whatever_the_time_says(one):
    bridge = await watching(one)
    before = await state(bridge, one)
    await worsens(one, bridge)
    await bridge.hear(event_id(one), seen=before)
    assert await bridge.became() == [("refused", "superseded")]
    await bridge.hear(event_id(one), seen=await state(bridge, one), _recorded=ago(40))
    await bridge.consider()
    assert len(one.posts()) == 1


async def test_seen_may_be_the_id_of_the_cloudevent(one):
    bridge = await watching(one)
    before = await announced(bridge)
    await worsens(one, bridge)
    await bridge.hear(event_id(one), seen=before["id"])
    assert await bridge.became() == [("refused", "superseded")]
    await bridge.hear(event_id(one), seen=(await announced(bridge, "updated"))["id"].upper())
    await bridge.consider()
    assert len(one.posts()) == 1


async def test_a_cloudevent_carries_its_state_and_its_life(one):
    bridge = await watching(one)
    assert (await announced(bridge))["data"]["state"] == await state(bridge, one)
    assert (await announced(bridge))["data"]["life"] == 1


async def test_an_unknown_state_waits_and_counts_when_it_comes(one):
    bridge = await watching(one)
    known = (await bridge.journal.load()).tracked[event_id(one)].event
    one.world.update("e", type="Reboot")
    coming = digest(replace(known, event_type="Reboot"))
    await bridge.hear(event_id(one), seen=coming)
    await bridge.consider()
    assert (one.posts(), await bridge.became()) == ([], [])
    await bridge.poll()
    await bridge.consider()
    assert len(one.posts()) == 1


async def test_a_vote_that_waits_for_its_state_survives_a_kill(one):
    bridge = await watching(one)
    known = (await bridge.journal.load()).tracked[event_id(one)].event
    await bridge.hear(event_id(one), seen=digest(replace(known, event_type="Reboot")))
    one.world.update("e", type="Reboot")
    after_the_kill = await one.bridge()
    await after_the_kill.consider()
    assert len(one.posts()) == 1


async def test_a_state_that_stays_unknown_is_superseded(one):
    bridge = await watching(one)
    await bridge.hear(event_id(one), seen="0" * 64, id="a-1")
    assert len(await bridge.journal.run(early)) == 1
    bridge.clock.ahead = timedelta(seconds=31)
    await bridge.consider()
    assert await bridge.became() == [("refused", "superseded")]
    assert await bridge.journal.run(early) == []
    await bridge.hear(event_id(one), seen="0" * 64, id="a-1")
    assert counted(bridge, "dropped", "duplicate") == 1


async def test_a_local_caller_learns_that_the_state_is_unknown_and_again_when_it_asks_again(one):
    bridge = await watching(one)
    body = ORDERS.delivery(event_id(one), seen="0" * 64, id="a-1").body
    for _ in range(2):
        [told] = await bridge.intake.take_local(Delivery(body), HTTP, "ops")
        assert (told.outcome, told.reason) == ("pending", "early")
        assert told.detail == "this bridge does not know the state in seen yet; the approval waits"


@pytest.mark.parametrize("answers", [True, False])
async def test_the_state_of_another_event_is_malformed(one, answers):
    bridge = await watching(one, answer_strays=answers)
    plan(one, "other", type="Freeze", resources=["vm-0"], notice="2h")
    await bridge.poll()
    other = (await bridge.journal.load()).tracked[event_id(one, "other")].event
    [_, told] = await bridge.told("scheduled")
    for seen in (digest(other), told["id"]):
        await bridge.hear(event_id(one), seen=seen)
    assert counted(bridge, "refused", "malformed") == 2
    assert await bridge.became() == [("refused", "malformed")] * (2 if answers else 0)
    [told] = await bridge.intake.take_local(
        Delivery(json.dumps({"eventId": event_id(one), "seen": seen}).encode()), HTTP, "ops"
    )
    assert (told.outcome, told.reason) == ("refused", "malformed")


async def test_superseded_votes_of_strangers_do_not_fill_the_journal(one):
    bridge = await watching(one)
    before = await state(bridge, one)
    await worsens(one, bridge)
    for number in range(MOST_REFUSALS + 10):
        await bridge.hear(event_id(one), seen=before, approver=f"stranger-{number}")
    assert await bridge.became() == [("refused", "superseded")] * MOST_REFUSALS


async def test_a_vote_that_waits_for_its_state_is_assessed_again_only_if_the_event_changed(one):
    bridge = await watching(one)
    watched = bridge.intake.assessor = CountingAssessor(bridge.intake.assessor)
    await bridge.hear(event_id(one), seen="0" * 64, id="a-1")
    for number in range(3):
        await bridge.hear("nothing", id=f"b-{number}")
    assert watched.assessed.count("a-1") == 2, "when it came, and once more"
    one.world.update("e", description="more")
    await bridge.poll()
    await bridge.consider()
    assert watched.assessed.count("a-1") == 3


class CountingAssessor:
    def __init__(self, real):
        self.real, self.assessed, self.ahead = real, [], real.ahead

    def assess(self, store, given, *rest, **more):
        self.assessed.append(given.approval.id)
        return self.real.assess(store, given, *rest, **more)


# --- lives, and a lost journal ------------------------------------------------------------------


async def second_life(made, bridge):
    """It is no longer announced, and comes back as it was two minutes later, two minutes ago."""
    key, not_before = event_id(made), made.world.find("e").event.not_before
    made.world.cancel("e")
    await bridge.poll()
    await passes(bridge, 2)
    plan(made, type="Freeze", resources=["vm-0"], notice="3h")
    entry = made.world.find("e")
    made.world._replace(entry, replace(entry.event, not_before=not_before))
    await bridge.poll()
    await passes(bridge, 2)
    assert event_id(made) == key


@pytest.mark.parametrize("decision", ["approve", "hold", "release"])
async def test_five_minutes_of_tolerance_do_not_reach_into_another_life(one, decision):
    bridge = await watching(one, **SIGNED)
    await second_life(one, bridge)
    message = ORDERS.delivery(event_id(one), age=5 * 60, decision=decision)
    await bridge.intake.take(message, "bus", must_sign=True)
    await bridge.consider()
    assert (one.posts(), await bridge.became()) == ([], [("refused", "replayed")])


async def test_what_was_published_in_another_life_is_superseded(one):
    bridge = await watching(one)
    was = await state(bridge, one)
    await second_life(one, bridge)
    for more in ({}, {"seen": was}):
        await bridge.hear(event_id(one), _recorded=ago(5), **more)
    await bridge.consider()
    assert (one.posts(), await bridge.became()) == ([], [("refused", "superseded")] * 2)


async def test_the_cloudevent_of_another_life_is_superseded(one):
    bridge = await watching(one)
    was = await announced(bridge)
    await second_life(one, bridge)
    for decision in ("approve", "release"):
        await bridge.hear(event_id(one), seen=was["id"], decision=decision)
    await bridge.consider()
    assert (one.posts(), await bridge.became()) == ([], [("refused", "superseded")] * 2)


@pytest.mark.parametrize(("said", "posts"), [({}, 0), ({"seen": "id"}, 0), ({"seen": "state"}, 1)])
async def test_in_a_new_journal_an_older_vote_counts_only_by_its_state(one, said, posts):
    plan(one, type="Freeze", resources=["vm-0"])
    bridge = await one.bridge(**SIGNED)
    known = {"id": (await announced(bridge))["id"], "state": await state(bridge, one)}
    more = {name: known[value] for name, value in said.items()}
    await bridge.hear(event_id(one), _recorded=ago(1), **more)
    delivery = ORDERS.delivery(event_id(one), age=60, **more)
    await bridge.intake.take(delivery, "bus", must_sign=True)
    await bridge.consider()
    assert len(one.posts()) == posts
    refused = [("refused", "unauthorized"), ("refused", "replayed")]
    assert await bridge.became() == (refused if not posts else [refused[0], ("granted", None)])


async def test_in_a_new_journal_an_older_hold_counts_because_its_approval_may(one):
    plan(one, type="Freeze", resources=["vm-0"])
    bridge = await one.bridge(**SIGNED)
    for name, decision in (("w-1", "approve"), ("w-2", "hold"), ("w-3", "release")):
        message = ORDERS.delivery(
            event_id(one), name=name, age=60, decision=decision, seen=await state(bridge, one)
        )
        await bridge.intake.take(message, "bus", must_sign=True)
    await bridge.consider()
    assert one.posts() == []
    assert ("refused", "replayed") in await bridge.became()
    assert [vote.decision for vote in await cast_votes(bridge, event_id(one))] == ["hold"]


# --- a sink's own vote --------------------------------------------------------------------------


async def test_a_sinks_vote_is_about_the_cloudevent_that_it_was_given(one):
    bridge = await watching(one, require="each-resource")
    given = given_to_it(await announced(bridge))
    await worsens(one, bridge, type="Terminate")
    await bridge.service.vote_for_sink(given, "drain")
    await bridge.consider()
    assert (one.posts(), await bridge.became()) == ([], [("refused", "superseded")])
    again = given_to_it(await announced(bridge, "updated"))
    await bridge.service.vote_for_sink(again, "drain")
    await bridge.consider()
    assert len(one.posts()) == 1


async def test_a_sinks_vote_for_another_life_is_superseded(one):
    bridge = await watching(one)
    given = given_to_it(await announced(bridge))
    await second_life(one, bridge)
    await bridge.service.vote_for_sink(given, "drain")
    await bridge.consider()
    assert (one.posts(), await bridge.became()) == ([], [("refused", "superseded")])


def given_to_it(told):
    return CloudEvent.decode(json.dumps(told).encode())
