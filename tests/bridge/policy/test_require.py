"""How votes are counted: by VM, by number of approvers, or by name."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ballots import cast
from support.world import ME, NOON, OTHER, SECOND, scheduled_event

from bridge.policy.allow import Allow
from bridge.policy.judge import Rules, judge
from bridge.policy.require import Approvers, Count, uncounted

EVENT = scheduled_event()
TWO, BOTH = Count(count=2), Approvers(approvers=("orders", "billing"))


def judged(require, *votes, now=NOON + 9 * SECOND):
    return judge(EVENT, votes, Rules(require=require), now)


def vote(approver="orders", after=0, **more):
    return cast(approver=approver, at=NOON + after * SECOND, verified=True, **more)


def test_different_approvers_are_counted():
    found = judged(TWO, vote(), vote(resource=OTHER))
    assert (found.satisfied, found.have, found.missing) == (False, ("orders",), ("1 more",))
    found = judged(TWO, vote(), vote("billing", 1), vote("stock", 2))
    assert (found.satisfied, found.missing, found.since) == (True, (), NOON + SECOND)
    assert judged(TWO).missing == ("2 more",)


def test_each_required_name_is_counted():
    found = judged(BOTH, vote(), vote("stock", 1))
    assert (found.satisfied, found.have, found.missing) == (False, ("orders",), ("billing",))
    found = judged(BOTH, vote(), vote("billing", 3))
    assert (found.satisfied, found.have, found.since) == (True, BOTH.approvers, NOON + 3 * SECOND)


@pytest.mark.parametrize("require", [TWO, BOTH])
def test_an_unverified_approver_does_not_count_but_can_hold(require):
    votes = [vote(), cast(approver="billing", at=NOON)]
    assert not judged(require, *votes).satisfied
    enough = [vote(), vote("billing")]
    hold = cast(approver="anybody", decision="hold", at=NOON)
    assert judged(require, *enough).satisfied
    assert judged(require, *enough, hold).holds == (f"anybody@{ME}",)


@pytest.mark.parametrize(
    ("require", "changes", "refused"),
    [
        ("any", {"verified": False}, False),
        ("each-resource", {"verified": False}, False),
        (TWO, {}, False),
        (TWO, {"verified": False}, True),
        (TWO, {"verified": False, "decision": "hold"}, False),
        (BOTH, {}, False),
        (BOTH, {"approver": "stock"}, True),
        (BOTH, {"approver": "stock", "decision": "hold"}, False),
        (BOTH, {"verified": False}, True),
    ],
    ids=str,
)
def test_an_approval_that_is_not_required_is_refused(require, changes, refused):
    found = uncounted(cast(**{"verified": True, **changes}), require)
    assert (found and found.reason) == ("unauthorized" if refused else None)


@pytest.mark.parametrize("names", list(itertools.product([False, True], repeat=3)), ids=str)
@pytest.mark.parametrize("held", [False, True])
def test_the_truth_table_of_three_votes(names, held):
    """The result of each policy for two VMs, two names, and a possible third that holds."""
    mine, theirs, again = names
    votes = [
        *([vote(resource=ME)] if mine else []),
        *([vote("billing", resource=OTHER)] if theirs else []),
        *([vote(resource=OTHER)] if again else []),
        *([vote("stock", decision="hold")] if held else []),
    ]
    assert judged("any", *votes).satisfied is (any(names) and not held)
    each = mine and (theirs or again)
    assert judged("each-resource", *votes).satisfied is (each and not held)
    heads = theirs and (mine or again)
    assert judged(TWO, *votes).satisfied is (heads and not held)
    assert judged(BOTH, *votes).satisfied is (heads and not held)


def test_a_policy_is_named_as_it_is_written():
    assert [str(one) for one in (TWO, BOTH)] == ["count: 2", "approvers: orders, billing"]


VOTES = st.builds(
    lambda who, what, where, proved: cast(
        approver=who, decision=what, resource=where, verified=proved
    ),
    st.sampled_from(["orders", "billing", "stock"]),
    st.sampled_from(["approve", "hold", "release"]),
    st.sampled_from([ME, OTHER, ""]),
    st.booleans(),
)
ENTRIES = [(), (Allow(approver="orders", all_resources=True), Allow(approver="billing"))]


@given(
    st.lists(VOTES, max_size=6),
    st.sampled_from(["any", "each-resource", TWO, BOTH]),
    st.sampled_from(ENTRIES),
)
def test_nothing_is_ever_satisfied_that_policy_and_identity_do_not_allow(votes, require, allow):
    latest = list({one.voter: one for one in votes}.values())
    found = judge(EVENT, latest, Rules(require=require, allow=allow), NOON)
    if not found.satisfied:
        return
    named = {rule.approver for rule in allow} or {"orders", "billing", "stock"}
    ready = [one for one in latest if one.decision == "approve" and one.approver in named]
    proved = {one.approver for one in ready if one.verified}
    whole = {one.approver for one in ready if not one.resource} & {
        r.approver for r in allow if r.all_resources
    }
    assert not found.holds
    assert ready
    if require == "each-resource":
        assert whole or {one.resource for one in ready} >= {ME, OTHER}
    if require == TWO:
        assert len(proved) >= 2
    if require == BOTH:
        assert proved >= set(BOTH.approvers)
