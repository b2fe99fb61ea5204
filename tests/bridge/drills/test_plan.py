"""What a drill may be, and the made-up event for it."""

from datetime import timedelta

import pytest
from pydantic import ValidationError
from support.world import ME, NOON, OTHER

from bridge.drills.plan import NOTICE, Plan, made_up

DUE = NOON + timedelta(minutes=15)


def plan(**asked):
    return Plan.model_validate({"eventType": "Reboot", **asked})


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


def test_the_default_notice_is_azures():
    assert {name: plan(eventType=name.lower()).seconds for name in NOTICE} == NOTICE
    assert plan(notice="24h").seconds == 86400
    assert plan(notice="1s").seconds == 1


def test_a_vm_that_is_named_twice_is_one():
    assert plan(resources=["vm-1", "vm-0", "VM-1"]).resources == ("vm-1", "vm-0")


def test_the_event_looks_like_azures_except_for_its_first_word():
    event = made_up(plan(eventType="freeze", duration="0s"), "0c1d-ab", (ME, OTHER), NOON)
    assert (event.event_id, event.event_type, event.status) == ("0C1D-AB", "Freeze", "Scheduled")
    assert (event.resources, event.not_before) == ((ME, OTHER), DUE)
    assert (event.duration, event.event_source) == (0, "Platform")
    assert event.description == "Drill: a rehearsal of Freeze; nothing will happen."
    assert made_up(plan(), "0c", (ME,), NOON).duration == -1
