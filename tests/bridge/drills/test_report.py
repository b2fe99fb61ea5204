"""The report of a drill, as the API returns it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.ballots import cast
from support.world import ME, NOON, OTHER, SECOND

from bridge.drills.plan import Plan, made_up
from bridge.drills.report import report, span, summary
from bridge.policy.drill import Drill, DrillVotes, advance, stop, tracked

DUE = NOON + timedelta(minutes=15)
BY = DUE - 5 * SECOND
ENOUGH = DrillVotes(
    "each-resource", satisfied=True, dry_run=False, since=NOON + 30 * SECOND, have=(ME,)
)
OPEN = DrillVotes("each-resource", satisfied=False, dry_run=False, have=(ME,), missing=(OTHER,))
PREFIX = "azure.scheduledevents."


def drill(*sinks):
    event = made_up(Plan.model_validate({"eventType": "Reboot"}), "0C", (ME, OTHER), NOON)
    return Drill(tracked(event, ME, NOON), "ops", "http", NOON, BY, sinks=sinks)


def over(*sinks, ballot=ENOUGH):
    begun = advance(drill(*sinks), ballot, DUE)
    return advance(begun, ballot, DUE + 5 * SECOND)


def row(kind="scheduled", *deliveries, **data):
    cloudevent = {"type": f"{PREFIX}{kind}.v1", "time": "2026-11-15T12:01:00Z", "data": data}
    return {"cloudevent": cloudevent, "deliveries": list(deliveries)}


def delivery(sink, outcome="delivered", after=0.25, error=None, attempts=1):
    at = NOON.timestamp() + after
    return {"sink": sink, "outcome": outcome, "at": at, "error": error, "attempts": attempts}


def told(made, votes=(), history=(), ballot=OPEN):
    return report(made, ballot, votes, history or [row()])


def test_it_says_what_was_rehearsed_when_and_by_whom():
    assert summary(over()) == {
        "eventId": "0C",
        "eventType": "Reboot",
        "resources": [ME, OTHER],
        "description": "Drill: a rehearsal of Reboot; nothing will happen.",
        "status": "Completed",
        "noticeSeconds": 900.0,
        "begunBy": "ops",
        "via": "http",
        "begunAt": "2026-11-15T12:00:00Z",
        "endedAt": "2026-11-15T12:15:05Z",
        "href": "/api/v1/drills/0C",
    }
    found = told(over())
    assert found["approveBy"] == "2026-11-15T12:14:55Z"
    assert found["startedAt"] == found["notBefore"] == "2026-11-15T12:15:00Z"


# --- the verdict ---------------------------------------------------------------------------------


def test_it_passes_when_the_votes_were_enough_in_time_and_every_required_sink_got_it():
    sinks = (("bus", "kafka", True), ("pager", "webhook", False))
    found = told(over(*sinks), history=[row("scheduled", delivery("bus"))])
    assert found["passed"] is True
    assert found["verdict"] == (
        "Passed: the approvals were enough 14m 25s before approveBy, "
        "and every required sink got the announcement in time."
    )
    assert told(over())["verdict"] == "Passed: the approvals were enough 14m 25s before approveBy."


def test_a_running_drill_has_no_verdict():
    found = told(drill(), ballot=OPEN)
    assert (found["passed"], found["verdict"]) == (None, "The drill is still running.")
    assert found["approvals"]["missing"] == [OTHER]


@pytest.mark.parametrize(
    ("ballot", "why"),
    [
        (OPEN, f"not everyone approved in time; missing: {OTHER}"),
        (replace(OPEN, missing=("any",)), "nobody approved in time"),
        (replace(OPEN, missing=(), holds=("billing",)), "held by billing"),
        (
            replace(ENOUGH, since=BY + 3 * SECOND),
            "the approvals were enough only 3s after approveBy",
        ),
    ],
)
def test_a_drill_fails_without_enough_approvals_in_time(ballot, why):
    found = told(over(ballot=ballot))
    assert (found["passed"], found["verdict"]) == (False, f"Failed: {why}.")


def test_the_last_moment_is_in_time():
    assert told(over(ballot=replace(ENOUGH, since=BY)))["passed"] is True


def test_a_stopped_drill_does_not_pass():
    found = told(stop(drill(), ENOUGH, NOON + SECOND))
    assert (found["passed"], found["verdict"]) == (
        False,
        "Failed: the drill was stopped early.",
    )


@pytest.mark.parametrize(
    ("got", "passed", "why"),
    [
        (delivery("bus"), True, None),
        (delivery("bus", after=900.0), True, None),
        (delivery("bus", "filtered"), True, None),
        (delivery("bus", after=900.5), False, "got it only after notBefore"),
        (delivery("bus", "dead", error="no such topic"), False, "did not get it: no such topic"),
        (delivery("bus", None, error="timed out"), False, "did not get it: timed out"),
        (delivery("bus", "overtaken"), False, "did not get it"),
        (delivery("other"), False, "did not get it"),
    ],
)
def test_a_required_sink_must_have_the_announcement_before_notbefore(got, passed, why):
    found = told(over(("bus", "kafka", True)), history=[row("scheduled", got)])
    assert found["passed"] is passed
    if why:
        assert found["verdict"] == f"Failed: sink bus {why}."
    best_effort = told(over(("bus", "kafka", False)), history=[row("scheduled", got)])
    assert best_effort["passed"] is True


# --- Azure ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ballot", "at", "early"),
    [
        (ENOUGH, "2026-11-15T12:00:30Z", 865.0),
        (replace(ENOUGH, since=BY + 2 * SECOND), "2026-11-15T12:14:57Z", -2.0),
        (replace(ENOUGH, dry_run=True), None, None),
        (OPEN, None, None),
    ],
)
def test_it_says_whether_and_when_azure_would_have_been_told(ballot, at, early):
    assert told(over(ballot=ballot))["azure"] == {
        "told": False,
        "wouldBeTold": at is not None,
        "at": at,
        "secondsBeforeApproveBy": early,
        "dryRun": ballot.dry_run,
    }


# --- who spoke, and who did not ------------------------------------------------------------------


def test_each_vote_says_how_long_before_the_deadline_it_came():
    vote = cast(at=NOON + 60 * SECOND, verified=True, reason="drained")
    late = cast(at=BY + SECOND, approver="billing", resource="", decision="hold")
    found = told(over(), [vote, late])["approvals"]["votes"]
    assert found[0] == {
        "approver": "orders",
        "resource": ME,
        "decision": "approve",
        "reason": "drained",
        "verified": True,
        "via": "bus",
        "at": "2026-11-15T12:01:00Z",
        "secondsBeforeApproveBy": 835.0,
    }
    assert (found[1]["resource"], found[1]["secondsBeforeApproveBy"]) == (None, -1.0)


def test_listed_approvers_without_a_vote_are_silent_but_refused_ones_are_not():
    refusal = row(
        "approval.refused", approver="ops", resource=None, decision="approve",
        reason="unauthorized", detail="ops may not say approve", verified=True, via="http",
    )  # fmt: skip
    ballot = replace(ENOUGH, expected=("orders", "billing", "ops"))
    found = told(over(ballot=ballot), [cast()], [row(), refusal])["approvals"]
    assert found["silent"] == ["billing"]
    [one] = found["refused"]
    assert (one["approver"], one["reason"], one["secondsBeforeApproveBy"]) == (
        "ops",
        "unauthorized",
        835.0,
    )


# --- sinks ---------------------------------------------------------------------------------------


def test_each_sink_says_when_it_got_the_announcement_and_what_else_it_got():
    history = [
        row("scheduled", delivery("bus", attempts=3, error="timed out")),
        row("started", delivery("bus")),
        row("completed"),
    ]
    [found] = told(over(("bus", "kafka", True)), history=history)["sinks"]
    assert found == {
        "sink": "bus",
        "type": "kafka",
        "required": True,
        "outcome": "delivered",
        "at": "2026-11-15T12:00:00.250Z",
        "seconds": 0.25,
        "inTime": True,
        "attempts": 3,
        "error": None,
        "cloudEvents": {"delivered": 2, "waiting": 1},
    }


def test_a_replaced_announcement_arrives_with_its_replacement():
    skipped = row("scheduled", delivery("bus", "overtaken"))
    for after, passed in ((3.0, True), (901.0, False)):
        history = [skipped, row("started", delivery("bus", after=after))]
        found = told(over(("bus", "slack", True)), history=history)
        assert (found["passed"], found["sinks"][0]["seconds"]) == (passed, after)


def test_it_is_settled_when_no_sink_has_anything_to_get():
    one = ("bus", "kafka", True)
    assert told(over(one))["settled"] is False
    assert told(over(one), history=[row("scheduled", delivery("bus", "dead"))])["settled"] is True
    assert told(over())["settled"] is True


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0ms"), (0.012, "12ms"), (2.34, "2.3s"), (7.0, "7s"), (59.9, "1m"), (865.0, "14m 25s"), (86400.0, "24h")],
)  # fmt: skip
def test_durations_have_a_fitting_precision(seconds, text):
    assert span(seconds) == text
