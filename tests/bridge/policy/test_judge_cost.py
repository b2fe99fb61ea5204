"""What counting costs: it grows with votes plus VMs plus rules, not with their product.

The tests count function calls, so they do not depend on the speed of the machine.
"""

import sys
from typing import Any

import pytest
from support.ballots import cast
from support.world import NOON, SECOND, scheduled_event

from bridge.policy.allow import Allow
from bridge.policy.judge import Rules, judge
from bridge.policy.require import Count
from bridge.policy.votes import Announced

SMALL = 100


def calls(work):
    """How many functions run during *work*, those in C included."""
    count = 0

    def note(_, event, __):
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def election(size, *, named=True, **changes):
    """As many voters as VMs; what they vote about is one object, as the journal reads it."""
    names = tuple(f"vm-{number}" for number in range(size))
    event = scheduled_event(resources=names)
    about = Announced(event.event_type, names, event.not_before)
    votes = [
        cast(
            approver=f"name-{number}", resource=name if named else "", about=about,
            at=NOON + number * SECOND, verified=True, **changes,
        )
        for number, name in enumerate(names)
    ]  # fmt: skip
    return event, votes


def entries(size, **more):
    keys = {"resources": ("vm-*",), **more}
    return tuple(Allow(approver=f"name-{number}", **keys) for number in range(size))


STORIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "each VM": ({}, {}),
    "each VM, and everyone for all of them": ({"named": False}, {"all_resources": True}),
    "any": ({"named": False}, {"require": "any"}),
    "a number of approvers": ({"named": False}, {"require": Count(count=SMALL)}),
    "holds": ({"decision": "hold"}, {}),
    "holds of all VMs": ({"named": False, "decision": "hold"}, {}),
    "without entries": ({}, {"listed": False}),
}


@pytest.mark.parametrize("story", STORIES)
def test_counting_twice_as_many_votes_and_vms_costs_about_twice_as_much(story):
    ballot, policy = STORIES[story]
    costs = []
    for size in (SMALL, SMALL * 4):
        event, votes = election(size, **ballot)
        more = {"all_resources": True} if policy.get("all_resources") else {}
        allow = entries(size, **more) if policy.get("listed", True) else ()
        rules = Rules(require=policy.get("require", "each-resource"), allow=allow)
        found = judge(event, votes, rules, NOON)
        assert found.satisfied is (ballot.get("decision") != "hold")
        costs.append(calls(lambda e=event, v=votes, r=rules: judge(e, v, r, NOON)))
    assert costs[1] < costs[0] * 5, costs


def test_votes_about_equal_but_separate_states_are_counted_alike():
    event, votes = election(SMALL)
    apart = [
        cast(
            approver=vote.approver, resource=vote.resource, at=vote.at, verified=True,
            about=Announced("Freeze" if number == 7 else "Reboot", event.resources, event.not_before),
        )
        for number, vote in enumerate(votes)
    ]  # fmt: skip
    found = judge(event, (vote for vote in apart), Rules(), NOON)
    assert found.missing == ("vm-7",)
