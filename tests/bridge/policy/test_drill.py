"""Drills as values: how they start, change and end."""

from dataclasses import replace
from datetime import timedelta

import pytest
from support.world import ME, NOON, SECOND

from bridge.drills.plan import Plan, made_up
from bridge.policy.allow import Allow
from bridge.policy.drill import (
    MISSED,
    Drill,
    DrillVotes,
    advance,
    announced,
    expected,
    next_moment,
    stop,
    tracked,
)
from bridge.policy.judge import Rules

DUE = NOON + timedelta(minutes=15)
OPEN = DrillVotes("any", satisfied=False, dry_run=False, missing=("any",))
ENOUGH = DrillVotes("any", satisfied=True, dry_run=False, since=NOON, have=("orders",))


def plan(**asked):
    return Plan.model_validate({"eventType": "Reboot", **asked})


def drill(**changes):
    event = made_up(plan(), "0c1d2e3f", (ME,), NOON)
    usual = Drill(tracked(event, ME, NOON), "ops", "http", NOON, DUE - 5 * SECOND, lasts=2.0)
    return replace(usual, **changes)


# --- what may be asked for -----------------------------------------------------------------------


# --- how it goes on ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ballot", "now", "status"),
    [
        (OPEN, NOON, "scheduled"),
        (OPEN, DUE - SECOND, "scheduled"),
        (OPEN, DUE, "started"),
        (ENOUGH, NOON, "started"),
        (replace(ENOUGH, dry_run=True), DUE - SECOND, "scheduled"),
        (replace(ENOUGH, dry_run=True), DUE, "started"),
        (OPEN, DUE + MISSED, "completed"),
        (ENOUGH, DUE + MISSED, "completed"),
    ],
)
def test_a_drill_starts_with_enough_votes_or_at_its_time(ballot, now, status):
    after = advance(drill(), ballot, now)
    assert after.status == status
    if status != "scheduled":
        assert after.ballot == ballot
    assert after.over is (status == "completed")
    assert after.inferred is (status == "completed")


def test_a_drill_ends_after_its_duration_and_keeps_its_votes():
    begun = advance(drill(), ENOUGH, NOON)
    assert next_moment(drill()) == DUE
    assert next_moment(begun) == NOON + 2 * SECOND
    assert advance(begun, OPEN, NOON + SECOND) is begun
    over = advance(begun, OPEN, NOON + 2 * SECOND)
    assert (over.status, over.ended_at, over.ballot) == ("completed", NOON + 2 * SECOND, ENOUGH)
    assert advance(over, OPEN, DUE) is over


def test_stopping_cancels_a_pending_drill_and_completes_a_started_one():
    assert stop(drill(), OPEN, NOON).status == "canceled"
    begun = advance(drill(), ENOUGH, NOON)
    over = stop(begun, OPEN, NOON + SECOND)
    assert (over.status, over.ballot, over.inferred) == ("completed", ENOUGH, False)


def test_each_state_has_its_announcement():
    begun = advance(drill(), ENOUGH, NOON)
    states = [
        drill(),
        begun,
        stop(begun, OPEN, NOON),
        stop(drill(), OPEN, NOON),
        advance(drill(), OPEN, DUE + MISSED),
    ]
    told = [announced(one) for one in states]
    assert [(one.what, one.previous_status, one.inferred) for one in told] == [
        ("scheduled", None, False),
        ("started", "Scheduled", False),
        ("completed", "Started", False),
        ("canceled", "Scheduled", True),
        ("completed", "Scheduled", True),
    ]
    assert all(one.drill and one.life == 0 for one in told)


# --- who is expected to speak --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        ({}, True),
        ({"event_types": ["Free*"]}, False),
        ({"event_types": ["re*"]}, True),
        ({"resources": ["front*"]}, True),
        ({"resources": ["batch-*"]}, False),
        ({"decisions": ["hold", "release"]}, False),
    ],
)
def test_approvers_who_may_approve_the_event_are_expected(rule, asked):
    allow = [Allow.model_validate({"approver": "orders", **rule})] * 2
    found = expected(Rules(allow=tuple(allow)).allow, drill().known.event)
    assert found == (("orders",) if asked else ())
