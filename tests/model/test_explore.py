"""The model explores every state of a small world, and finds each error that is put into the code."""

from dataclasses import replace

import pytest
from model.explore import Explorer
from model.world import Message
from model.worlds import SMALL, TAKEOVER, WORLDS

import bridge.approvals.intake
from bridge.approvals.decisions import Decisions
from bridge.approvals.publisher import Publisher
from bridge.approvals.start_requests import StartRequests
from bridge.policy.judge import CountedVotes, Judgment

QUICK = replace(SMALL, moments=(0,), failures=0, repeats=0)


def test_a_small_world_keeps_every_promise_in_every_state():
    report = Explorer(SMALL).run()
    assert report.problems == [], str(report)
    assert report.states > 500
    assert report.posts > 10
    assert report.finals > 1


def test_the_same_world_has_the_same_states_again():
    first, second = Explorer(QUICK).run(), Explorer(QUICK).run()
    assert (first.states, first.transitions) == (second.states, second.transitions)


def test_every_world_says_what_it_is_about_in_a_name_of_its_own():
    assert len({one.name for one in WORLDS}) == len(WORLDS)
    assert all(one.says.endswith(".") for one in WORLDS)


def test_a_message_that_counts_twice_is_found_with_its_story(monkeypatch):
    monkeypatch.setattr(bridge.approvals.intake, "seen", lambda *_: False)
    messages = (*QUICK.messages, Message("m2", "A", "orders", "hold", channel="radio"))
    report = Explorer(replace(QUICK, messages=messages, repeats=1, turns="request")).run()
    assert report.problems == ["m1 was received before, and changes the journal again"]
    assert report.story[-1] == "vm-0 receives m1 (orders: approve A) again."


def test_a_bridge_that_acts_before_its_turn_is_found(monkeypatch):
    monkeypatch.setattr(Publisher, "place", lambda *_: 0)
    report = Explorer(replace(TAKEOVER, crashes=0)).run()
    assert report.problems == ["vm-1 POSTs A before its turn"]


def test_a_vote_that_nobody_acts_on_is_found(monkeypatch):
    monkeypatch.setattr(StartRequests, "our_turn", lambda *_: None)
    report = Explorer(QUICK).run()
    assert report.problems == ["vm-0 is allowed to POST A, and does not"]


def test_a_start_request_without_votes_is_found(monkeypatch):
    cast = Explorer(QUICK).steps  # the model is built before the code is broken
    assert cast.first().time == 0
    monkeypatch.setattr(CountedVotes, "judge", lambda *_: Judgment(satisfied=True, since=_at()))
    monkeypatch.setattr(Decisions, "_has_come", lambda *_: True)
    messages = (Message("m1", "A", "orders", "hold"),)
    report = Explorer(replace(QUICK, messages=messages)).run()
    assert "vm-0 POSTs A: somebody holds" in report.problems


def _at():
    return SMALL.now(0)


@pytest.mark.parametrize("turns", ["commit", "request"])
def test_fewer_turns_have_fewer_states(turns):
    every = Explorer(replace(QUICK, turns="operation")).run()
    assert Explorer(replace(QUICK, turns=turns)).run().states < every.states
