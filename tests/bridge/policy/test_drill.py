"""Rehearsals as values: what may be asked for, and how they go on."""

from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import ValidationError
from support.world import ME, NOON, OTHER, SECOND

from bridge.drills.plan import NOTICE, Plan, made_up
from bridge.policy.allow import Allow
from bridge.policy.drill import (
    MISSED,
    Ballot,
    Drill,
    advance,
    announced,
    expected,
    next_moment,
    stop,
    tracked,
)
from bridge.policy.judge import Rules

DUE = NOON + timedelta(minutes=15)
OPEN = Ballot("any", satisfied=False, dry_run=False, missing=("any",))
ENOUGH = Ballot("any", satisfied=True, dry_run=False, since=NOON, have=("orders",))


def plan(**asked):
    return Plan.model_validate({"eventType": "Reboot", **asked})


def drill(**changes):
    event = made_up(plan(), "0c1d2e3f", (ME,), NOON)
    usual = Drill(tracked(event, ME, NOON), "ops", "http", NOON, DUE - 5 * SECOND, lasts=2.0)
    return replace(usual, **changes)


# --- what may be asked for -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({}, "eventType"),
        ({"eventType": "Rebot"}, "must be one of Freeze, Reboot, Redeploy, Preempt, Terminate"),
        ({"eventType": 1}, "must be one of Freeze"),
        ({"notice": "999ms"}, "must be from 1s to 24h"),
        ({"notice": "25h"}, "must be from 1s to 24h"),
        ({"notice": 900}, "is not a duration"),
        ({"duration": "16m"}, "must be from 0s to 15m"),
        ({"description": "two\nlines"}, "must be one line of at most 400 characters"),
        ({"description": "x" * 401}, "must be one line of at most 400 characters"),
        ({"description": " "}, "that is not empty"),
        ({"resources": [""]}, "must be one line of at most 256 characters"),
        ({"resources": ["vm\x1b"]}, "must be one line of at most 256 characters"),
        ({"resources": [f"vm-{n}" for n in range(101)]}, "at most 100"),
        ({"resource": ["vm-0"]}, "not permitted"),
        ({"event_type": "Reboot"}, "not permitted"),
    ],
)
def test_a_plan_that_cannot_be_rehearsed_is_refused(asked, why):
    with pytest.raises(ValidationError, match=why):
        Plan.model_validate({"eventType": "Reboot", **asked} if asked else {})


def test_the_notice_is_azures_unless_another_is_asked_for():
    assert {name: plan(eventType=name.lower()).seconds for name in NOTICE} == NOTICE
    assert plan(notice="24h").seconds == 86400
    assert plan(notice="1s").seconds == 1


def test_a_vm_that_is_named_twice_is_one():
    assert plan(resources=["vm-1", "vm-0", "VM-1"]).resources == ("vm-1", "vm-0")


def test_the_event_is_like_azures_but_for_its_first_word():
    event = made_up(plan(eventType="freeze", duration="0s"), "0c1d-ab", (ME, OTHER), NOON)
    assert (event.event_id, event.event_type, event.status) == ("0C1D-AB", "Freeze", "Scheduled")
    assert (event.resources, event.not_before) == ((ME, OTHER), DUE)
    assert (event.duration, event.event_source) == (0, "Platform")
    assert event.description == "Drill: a rehearsal of Freeze; nothing will happen."
    assert made_up(plan(), "0c", (ME,), NOON).duration == -1


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
def test_it_starts_when_the_votes_let_it_or_when_its_time_has_come(ballot, now, status):
    after = advance(drill(), ballot, now)
    assert after.status == status
    if status != "scheduled":
        assert after.ballot == ballot
    assert after.over is (status == "completed")
    assert after.inferred is (status == "completed")


def test_it_is_over_after_as_long_as_it_lasts_and_keeps_its_ballot():
    begun = advance(drill(), ENOUGH, NOON)
    assert next_moment(drill()) == DUE
    assert next_moment(begun) == NOON + 2 * SECOND
    assert advance(begun, OPEN, NOON + SECOND) is begun
    over = advance(begun, OPEN, NOON + 2 * SECOND)
    assert (over.status, over.ended_at, over.ballot) == ("completed", NOON + 2 * SECOND, ENOUGH)
    assert advance(over, OPEN, DUE) is over


def test_what_has_not_started_is_canceled_and_what_has_is_completed():
    assert stop(drill(), OPEN, NOON).status == "canceled"
    begun = advance(drill(), ENOUGH, NOON)
    over = stop(begun, OPEN, NOON + SECOND)
    assert (over.status, over.ballot, over.inferred) == ("completed", ENOUGH, False)


def test_what_is_said_of_each_state():
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
def test_who_may_approve_an_event_like_this_is_expected_to(rule, asked):
    allow = [Allow.model_validate({"approver": "orders", **rule})] * 2
    found = expected(Rules(allow=tuple(allow)).allow, drill().known.event)
    assert found == (("orders",) if asked else ())
