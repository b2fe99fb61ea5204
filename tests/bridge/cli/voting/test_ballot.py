"""Which scheduled events a vote is about, and how many messages it takes."""

import pytest
from support.world import ME, OTHER

from bridge.cli.voting.ballot import (
    Ballot,
    Choice,
    ballots,
    find,
    nearest_id,
    open_here,
    spoken_for,
    unseen,
)
from bridge.policy.message import MOST_EVENTS


def event(event_id="E1", **changes):
    usual = {"eventId": event_id, "pending": True, "status": "Scheduled", "affected": True}
    usual |= {"resources": [ME, OTHER], "href": f"/api/v1/events/{event_id.lower()}"}
    return {**usual, **changes}


@pytest.mark.parametrize(
    ("changes", "is_open"),
    [
        ({}, True),
        ({"affected": None}, True),
        ({"affected": False}, False),
        ({"pending": False}, False),
        ({"status": "Started"}, False),
    ],
)
def test_only_what_can_still_be_approved_here_is_open(changes, is_open):
    assert bool(open_here([event(**changes)])) is is_open


def test_only_events_that_name_the_resource_are_open_for_it():
    alone = event("E2", resources=[ME])
    assert open_here([event(), alone], OTHER.upper()) == [event()]


def test_an_event_is_found_by_its_id_in_any_case_and_by_its_hash_and_once():
    known = [event("ABC"), event("strange id", href="/api/v1/events/0a1b")]
    found, unknown = find(["abc", "ABC", "0A1B", "nothing"], known)
    assert found == known
    assert unknown == {"nothing": []}


def test_the_nearest_id_is_a_similar_one():
    known = [event("602D9444"), event("C7061BAC")]
    assert nearest_id("602d9445", known) == "602D9444"
    assert nearest_id("zzz", known) is None


def test_a_ballot_of_one_event_names_it_and_one_of_several_is_azures_own_body():
    choice = Choice("hold", reason="not yet")
    said = {"decision": "hold", "reason": "not yet", "id": "m"}
    assert Ballot(("A",), choice, ME).body("m") == {"eventId": "A", "resource": ME, **said}
    several = {"StartRequests": [{"EventId": "A"}, {"EventId": "B"}]}
    assert Ballot(("A", "B"), choice).body("m") == {**several, **said}


def test_each_resource_gets_one_message():
    alone = event("E2", resources=[ME])
    made = list(ballots([event(), alone, event("E3")], Choice(), ME))
    assert [(one.event_ids, one.resource) for one in made] == [
        (("E1", "E3"), ME),
        (("E2",), None),
    ]


def test_each_state_to_approve_gets_one_message_that_names_it():
    events = [event("E1", state="s-1"), event("E2", state="s-2"), event("E3", state="s-1")]
    made = list(ballots(events, Choice(), ME))
    assert [(one.event_ids, one.seen) for one in made] == [(("E1", "E3"), "s-1"), (("E2",), "s-2")]
    assert made[1].body("m") == {
        "eventId": "E2", "decision": "approve", "resource": ME, "seen": "s-2", "id": "m"
    }  # fmt: skip
    [hold] = ballots(events, Choice("hold"), ME)
    assert "seen" not in hold.body("m")


def test_no_message_names_more_events_than_are_read():
    ids = [f"E{number}" for number in range(MOST_EVENTS + 1)]
    first, second = unseen(ids, Choice(), None)
    assert (len(first.event_ids), second.event_ids) == (MOST_EVENTS, (ids[-1],))


@pytest.mark.parametrize(
    ("choice", "vm", "resource"),
    [
        (Choice(), ME.lower(), ME),
        (Choice(), None, None),
        (Choice(), "elsewhere", None),
        (Choice(whole=True), ME, None),
        (Choice(resource=OTHER), ME, OTHER),
    ],
    ids=["this VM, as the event spells it", "no name", "not named", "the whole event", "another"],
)
def test_a_vote_is_for_the_vm_that_is_named_or_for_this_one(choice, vm, resource):
    assert spoken_for(event(), choice, vm) == resource
