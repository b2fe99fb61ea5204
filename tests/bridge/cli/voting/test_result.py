"""How CloudEvents change a result, and its text."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from support.world import EVENT_ID, published

from bridge.cli.voting.result import VoteResult, caught_up, explained, heard, lines, short

TOLD = {short(one): one for one in (json.loads(each.body) for each in published().values())}
WAITS = VoteResult(EVENT_ID, "pending", "approve", approval_id="a-1")
RECORDED = VoteResult(EVENT_ID, "recorded", "approve", approval_id="a-1")


def rows(*kinds):
    return [{"cloudevent": TOLD[kind], "deliveries": []} for kind in kinds]


@pytest.mark.parametrize(
    ("kind", "outcome", "detail"),
    [
        ("approval.granted", "granted", None),
        ("approval.failed", "failed", TOLD["approval.failed"]["data"]["detail"]),
        ("started", "pending", "the event has started in the meantime"),
        ("completed", "pending", "the event ended in the meantime"),
    ],
)
def test_a_change_of_its_event_ends_the_wait(kind, outcome, detail):
    found = heard(WAITS, TOLD[kind])
    assert (found.outcome, found.detail, found.waits) == (outcome, detail, False)


@pytest.mark.parametrize(
    "kind", ["approval.recorded", "approval.refused", "source.snapshot", "updated"]
)
def test_other_cloudevents_change_nothing(kind):
    assert heard(WAITS, TOLD[kind]) == WAITS


def test_changes_of_other_events_change_nothing():
    other = VoteResult("OTHER", "pending", "approve")
    assert all(heard(other, one) == other for one in TOLD.values())


def test_a_refusal_of_this_vote_ends_the_wait():
    refused = TOLD["approval.refused"]
    mine = VoteResult(EVENT_ID, "pending", "approve", approval_id=refused["data"]["approvalId"])
    found = heard(mine, refused)
    assert (found.outcome, found.reason) == ("refused", "resource-required")
    assert found.bad


def test_what_happened_before_the_stream_opened_is_read_from_the_history():
    assert caught_up(WAITS, rows("scheduled", "approval.recorded", "approval.granted")).outcome == (
        "granted"
    )
    assert caught_up(WAITS, rows("scheduled", "updated")) == WAITS


def test_an_earlier_incarnation_is_not_read():
    assert caught_up(WAITS, rows("approval.granted", "started", "completed", "scheduled")) == WAITS


@pytest.mark.parametrize(
    ("drill", "said"),
    [(True, "a drill: Azure would be notified now, but is not"), (False, "dry run: Azure would")],
)
def test_the_result_says_that_it_is_a_drill(drill, said):
    told = TOLD["approval.recorded"]
    data = {**told["data"], "dryRun": True, "wouldGrant": True}
    row = {"cloudevent": {**told, "data": data}}
    found = explained(RECORDED, {"notBefore": None, "drill": drill, "history": [row]})
    assert said in lines([found], datetime.now(UTC))


def test_a_hold_in_a_drill_says_that_it_is_a_drill():
    hold = replace(RECORDED, decision="hold", drill=True)
    assert lines([hold], datetime.now(UTC)).endswith("; a drill: Azure is not notified\n")


def test_without_a_history_the_vote_is_only_recorded():
    found = explained(RECORDED, {"notBefore": None, "drill": False, "history": []})
    assert lines([found], datetime.now(UTC)) == f"{EVENT_ID}  recorded\n"


def test_a_failure_without_a_message_is_still_a_sentence():
    [line] = lines([VoteResult("E", "failed", "approve")], datetime.now(UTC)).splitlines()
    assert line == "E  failed: no reason was given"
