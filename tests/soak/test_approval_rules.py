"""The judge finds approvals that were lost, and POSTs that policy does not allow."""

from dataclasses import replace
from typing import Any

import pytest
from soak.doctored import EVENT, LATER, VM, VOTE, delivered, enough, ledger, post, row, said
from soak.ledger import Ledger


def test_a_post_that_was_not_observed_is_found():
    doctored = ledger()
    doctored.posts.clear()
    assert said(doctored) == ["1 POSTs came, and 0 were observed"]


def test_a_bridge_whose_looks_were_not_observed_is_found():
    doctored = ledger()
    doctored.looks.clear()
    assert said(doctored) == [f"no clean look of {VM} was observed"]


def unposted() -> Ledger:
    doctored = ledger()
    doctored.truth = [each for each in doctored.truth if each["what"] != "approval"]
    doctored.posts.clear()
    return doctored


def test_an_approval_that_was_never_posted_is_found():
    assert said(unposted()) == [f"story-1: {EVENT} was approved, and never POSTed"]


def test_an_approval_that_is_reported_as_failed_is_answered():
    doctored = unposted()
    told = replace(row(8, "completed", LATER), type="azure.scheduledevents.approval.failed.v1")
    doctored.rows.append(replace(told, id="failed"))
    sinks = [sink for sink in doctored.sinks if sink != "drain"]
    doctored.deliveries += [delivered(doctored.rows[-1], sink, 51.0) for sink in sinks]
    assert said(doctored) == []


@pytest.mark.parametrize("state", ["due", "asked"])
def test_a_request_that_is_still_open_at_the_end_is_found(state: str):
    doctored = ledger()
    doctored.finals[0].grants["OTHER"] = state
    assert said(doctored) == [f"{VM} still has to tell Azure about OTHER"]


def test_a_post_for_an_event_that_nobody_approved_is_found():
    doctored = ledger()
    doctored.stories[0].expected, doctored.stories[0].plot = "never", "forged"
    assert said(doctored) == [f"story-1 (forged): {EVENT} must not be POSTed"]


def test_a_post_before_the_release_of_a_hold_is_found():
    doctored = ledger()
    story = doctored.stories[0]
    story.plot, story.since = "held-and-released", 20.0
    assert said(doctored) == [f"story-1 (held-and-released): {EVENT} must not be POSTed"]
    story.since = 5.0
    assert said(doctored) == []


HOLD = {**VOTE, "approver": "night-shift", "decision": "hold", "resource": ""}
STALE = {**VOTE["about"], "not_before": "2026-11-17T06:00:00+00:00"}


@pytest.mark.parametrize(
    ("votes", "why"),
    [
        ([*enough(), HOLD], "somebody holds"),
        (enough()[:1], "it is not enough"),
        ([{**vote, "approver": "mallory"} for vote in enough()], "it is not enough"),
        ([{**vote, "approver": "plant", "via": "floor"} for vote in enough()], "it is not enough"),
        ([{**vote, "via": "floor"} for vote in enough()], "it is not enough"),
        ([{**vote, "about": STALE} for vote in enough()], "it is not enough"),
        ([], "it is not enough"),
    ],
    ids=[
        "a hold",
        "a missing vote",
        "nobody we know",
        "a name without its proof",
        "another channel than its own",
        "an event that moved earlier",
        "no votes",
    ],
)
def test_a_post_against_policy_is_found(votes: list[Any], why: str):
    doctored = ledger()
    doctored.posts = [post(6, *votes)]
    assert said(doctored) == [f"{VM} POSTed {EVENT}, but {why}"]


def test_the_vote_of_a_command_that_succeeded_counts():
    doctored = ledger()
    sink = {"approver": "sink:drain", "via": "sink", "verified": True}
    doctored.posts = [post(6, *({**vote, **sink} for vote in enough()))]
    assert said(doctored) == []


def test_what_was_recorded_after_the_last_look_does_not_make_a_post_wrong():
    doctored = ledger()
    late = {**HOLD, "at": "2026-11-17T04:00:05.800+00:00"}
    doctored.posts = [post(6, *enough(), late)]
    assert said(doctored) == []


def test_a_post_that_is_not_marked_is_found():
    doctored = ledger()
    doctored.truth = [each for each in doctored.truth if each["what"] != "started"]
    doctored.truth[2]["at"] = "2026-11-17T04:00:30.000Z"
    doctored.posts = [post(6, *enough(), mark=None)]
    assert f"{VM} POSTed {EVENT}, but it is not marked" in said(doctored)


def test_a_story_that_never_ended_is_found():
    doctored = ledger()
    doctored.stories[0].finished = False
    assert said(doctored) == [f"story-1 (approved, {EVENT}) did not end"]
