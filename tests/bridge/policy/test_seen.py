"""Which state an approval is about, and when that is no longer what the event is."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st
from support.world import ME, NOON, NOTICE, OBSERVER, OTHER, SECOND, World, scheduled_event

from bridge.core import messages
from bridge.core.cloudevent import CloudEvent
from bridge.core.ids import digest
from bridge.core.state import Ended, Tracked
from bridge.policy.judge import Rules, as_vote
from bridge.policy.seen import Sighting, as_seen, unfit
from bridge.policy.votes import Approval, Given, Refusal, Vote, lapsed

FREEZE = scheduled_event(event_type="Freeze", resources=(ME,))
WORSE = scheduled_event(event_type="Terminate", resources=(ME, OTHER))
MINUTE = timedelta(minutes=1)
ANY = Rules(require="any")
LATER = NOON + 10 * MINUTE


def history(*events, watching=True) -> tuple[Tracked, list[CloudEvent]]:
    """The event after it had these states, one minute apart, and the CloudEvents about it."""
    world, told = World(), []
    for number, event in enumerate(events):
        facts = {} if number else {"watching": watching}
        for found in world.see(event, after=MINUTE, **facts):
            told.append(messages.transition(found, OBSERVER, world.facts.now, 1))
    return world.state.tracked[FREEZE.key], told


def sighting(known: Tracked, **more) -> Sighting:
    return Sighting(known, LATER, **more)


def given(at=LATER, **more) -> Given:
    said = {name: more.pop(name) for name in ("seen", "decision") if name in more}
    return Given(Approval(FREEZE.event_id, "k", "a-1", **said), "bus", at, **more)


def about(said: Given, here: Sighting) -> str | None:
    """The type of the state that it is about, or why it does not count; None while unknown."""
    vote = as_vote(said, here.known.event, here.known.life, here.now)
    found = unfit(said, vote, here, ANY) or as_seen(vote, said, here)
    if isinstance(found, Refusal):
        return found.reason
    return found.about.event_type if found else None


# The Freeze is seen at 12:01, and the rest a minute later.
@pytest.mark.parametrize(
    ("moment", "found"),
    [
        (NOON, "superseded"),
        (NOON + MINUTE, "superseded"),
        (NOON + MINUTE + SECOND, "superseded"),
        (NOON + 2 * MINUTE, "superseded"),
        (NOON + 2 * MINUTE + SECOND, "Terminate"),
        (LATER + MINUTE, "Terminate"),
        (None, "Terminate"),
    ],
)
@pytest.mark.parametrize("clock", ["signed_at", "recorded"])
def test_without_seen_it_is_about_the_state_at_its_time(clock, moment, found):
    known, _ = history(FREEZE, WORSE)
    assert about(given(**{clock: moment}), sighting(known)) == found


def test_the_signing_time_comes_before_the_record_time():
    known, _ = history(FREEZE, WORSE)
    early, late = NOON + MINUTE + SECOND, NOON + 3 * MINUTE
    assert about(given(signed_at=early, recorded=late), sighting(known)) == "superseded"
    assert about(given(signed_at=late, recorded=early), sighting(known)) == "Terminate"


def test_our_clock_may_be_wrong():
    """Ours is an hour ahead: what it calls 13:01:30 is 12:01:30 for Azure and the broker."""
    known, _ = history(FREEZE, WORSE)
    hour = timedelta(hours=1)
    here = replace(sighting(known, ahead=hour), now=LATER + hour)
    at = NOON + MINUTE + 30 * SECOND
    for more in ({"recorded": at, "log": "bus/topic/0"}, {"recorded": at + hour}):
        assert about(given(LATER + hour, **more), here) == "superseded"
    assert about(given(LATER + hour), here) == "Terminate"


def test_an_approval_that_waited_for_its_event_is_about_its_first_state():
    known, _ = history(FREEZE, WORSE)
    assert about(given(NOON), sighting(known)) == "superseded"
    known, _ = history(FREEZE)
    assert about(given(NOON), sighting(known)) == "Freeze"


@pytest.mark.parametrize(("watching", "found"), [(True, "Freeze"), (False, "superseded")])
def test_what_was_published_before_the_first_state_counts_only_if_somebody_watched(watching, found):
    known, [told] = history(FREEZE, watching=watching)
    here = sighting(known, answered=told)
    for more in ({}, {"seen": told.id}):
        assert about(given(recorded=NOON, **more), here) == found
    assert about(given(signed_at=NOON), here) == "Freeze", "clocks may differ by minutes"
    assert about(given(recorded=NOON, seen=digest(FREEZE)), here) == "Freeze"


@pytest.mark.parametrize("worse", [WORSE, replace(FREEZE, not_before=NOON + NOTICE - MINUTE)])
def test_a_named_state_is_what_it_is_about_whatever_the_time(worse):
    known, _ = history(FREEZE, worse)
    for moment in (None, NOON + MINUTE + SECOND, NOON + 5 * MINUTE):
        said = given(seen=digest(FREEZE).upper(), signed_at=moment)
        assert about(said, sighting(known)) == "superseded"
        said = given(seen=digest(worse), signed_at=moment)
        assert about(said, sighting(known)) == worse.event_type


def test_what_improved_and_got_as_bad_again_is_no_worse():
    known, _ = history(WORSE, FREEZE, WORSE)
    assert about(given(seen=digest(WORSE)), sighting(known)) == "Terminate"
    assert about(given(seen=digest(FREEZE)), sighting(known)) == "superseded"


def test_a_cloudevent_is_about_the_state_that_it_told():
    known, [first, second] = history(FREEZE, WORSE)
    for told, found in ((first, "superseded"), (second, "Terminate")):
        assert about(given(seen=told.id), sighting(known, answered=told)) == found
    assert about(given(seen="d8d2b1b6-0000"), sighting(known)) is None


def test_on_a_bus_the_id_of_a_first_announcement_is_about_the_first_state_known():
    """Another bridge may have published it before the event named this VM."""
    known, [told] = history(replace(FREEZE, resources=(OTHER,)), WORSE)
    here = sighting(known, answered=told)
    assert about(given(seen=told.id), here) == "superseded"
    assert about(given(seen=told.id, local=True), here) == "Terminate"
    assert about(given(seen=told.data["state"]), here) == "Terminate"


@pytest.mark.parametrize("ahead", [timedelta(), timedelta(hours=1), timedelta(hours=-1)])
def test_a_reminder_is_about_the_state_at_its_time_even_if_our_clock_is_wrong(ahead):
    known, [told, _] = history(FREEZE, WORSE)
    for minutes, found in ((1.5, "superseded"), (3, "Terminate")):
        time = (NOON + minutes * MINUTE + ahead).isoformat()
        due = {**told.envelope, "time": time, "type": "azure.scheduledevents.approval.due.v1"}
        reminder = CloudEvent.decode(json.dumps(due).encode())
        here = replace(sighting(known, answered=reminder, ahead=ahead), now=LATER + ahead)
        assert about(given(LATER + ahead, seen=told.id), here) == found


@pytest.mark.parametrize(
    ("decision", "found"), [("approve", "malformed"), ("release", "malformed"), ("hold", None)]
)
def test_what_belongs_to_another_event_is_malformed_unless_it_is_a_hold(decision, found):
    known, _ = history(FREEZE)
    other = scheduled_event("C7061BAC", description="another")
    world = World()
    [transition] = world.see(other)
    told = messages.transition(transition, OBSERVER, NOON, 1)
    here = sighting(known, pending=[*world.state.tracked.values()], answered=None)
    named = given(seen=digest(other), decision=decision)
    answering = given(seen=told.id, decision=decision)
    for said, where in ((named, here), (answering, replace(here, answered=told))):
        assert about(said, where) == (found or "Freeze")


@pytest.mark.parametrize("decision", ["approve", "release"])
def test_what_belongs_to_another_life_is_superseded(decision):
    known, [told] = history(FREEZE)
    here = sighting(replace(known, life=2), answered=told, last=Ended(1, NOON))
    assert about(given(seen=told.id, decision=decision), here) == "superseded"
    for seen in (None, digest(FREEZE)):
        said = given(seen=seen, recorded=NOON, decision=decision)
        assert about(said, here) == "superseded"
    assert about(given(recorded=NOON, decision="hold"), here) == "Freeze"


def test_in_a_newer_journal_only_a_state_tells_what_an_older_approval_is_about():
    known, [told] = history(FREEZE)
    here = sighting(known, answered=told, born=NOON + MINUTE)
    assert about(given(recorded=NOON), here) == "superseded"
    assert about(given(recorded=NOON, seen=told.id), here) == "superseded"
    assert about(given(recorded=NOON, seen=digest(FREEZE)), here) == "Freeze"
    assert about(given(recorded=NOON, decision="hold"), here) == "Freeze"


KINDS = ("Freeze", "Reboot", "Redeploy", "Terminate")
states = st.builds(
    lambda kind, names, minutes: replace(
        FREEZE, event_type=kind, resources=names, not_before=NOON + minutes * MINUTE
    ),
    st.sampled_from(KINDS),
    st.sampled_from([(ME,), (ME, OTHER)]),
    st.integers(20, 22),
)


@examples(st.lists(states, min_size=1, max_size=6), st.integers(0, 400), st.booleans())
def test_no_approval_counts_for_more_than_what_its_sender_could_see(seen, second, named):
    """The oracle: the sender saw the newest state that began before its second."""
    known, _ = history(*seen)
    moment = NOON + second * SECOND
    shown = [one for number, one in enumerate(seen, 1) if NOON + number * MINUTE < moment]
    saw = shown[-1] if shown else seen[0]
    said = given(signed_at=moment, seen=digest(saw) if named else None)
    vote = as_vote(said, known.event, 1, LATER)
    found = as_seen(vote, said, sighting(known))
    sent = replace(vote, about=as_vote(said, saw, 1, LATER).about)
    assert isinstance(found, Vote) is not lapsed(sent, known.event)
