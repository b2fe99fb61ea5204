"""Which votes count, how many are enough, and whose turn it is."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ballots import cast
from support.world import ME, NOON, NOTICE, OTHER, SECOND, scheduled_event, started

from bridge.policy.allow import Allow
from bridge.policy.judge import CountedVotes, Rules, as_vote, judge, objection, turn
from bridge.policy.require import Approvers
from bridge.policy.votes import CONTROL, Announced, Approval, Given, Refusal

EVENT = scheduled_event()
EACH = Rules()
ANY = Rules(require="any")


def approval(**said):
    return Approval(**{"event_id": EVENT.event_id, "key": "k", "id": "a-1", **said})


def against(said: Approval, event=EVENT, rules=EACH, identity=None) -> str | None:
    """The reason why it does not count."""
    given = Given(said, "bus", NOON, identity)
    found: Refusal | None = objection(given, as_vote(given, event, 1, NOON), event, rules)
    return found.reason if found else None


def test_a_vote_for_one_vm_counts_in_any_case():
    assert against(approval(resource=ME.swapcase())) is None


def test_an_event_with_several_vms_needs_a_resource_under_each_resource():
    assert against(approval()) == "resource-required"
    assert against(approval(), rules=ANY) is None
    assert against(approval(), replace(EVENT, resources=(ME,))) is None


@pytest.mark.parametrize("decision", ["hold", "release"])
def test_a_hold_or_release_without_a_resource_is_for_the_whole_event_under_every_policy(decision):
    for rules in (EACH, ANY):
        assert against(approval(decision=decision), rules=rules) is None


def test_a_resource_that_the_event_does_not_name_cannot_be_approved_for():
    for rules in (EACH, ANY):
        assert against(approval(resource="elsewhere"), rules=rules) == "not-approvable"


@pytest.mark.parametrize("decision", ["approve", "hold", "release"])
def test_nothing_counts_once_the_event_has_started(decision):
    said = approval(resource=ME, decision=decision)
    assert against(said, started(EVENT)) == "expired"


@pytest.mark.parametrize(
    ("require", "advice"),
    [
        ("any", "; add {approver: uid 0, via: control} to it, or sign the vote"),
        (Approvers(approvers=("uid 0", "b")), "; add {approver: uid 0, via: control} to it, or sign the vote"),
        (Approvers(approvers=("a", "b")), ", and approvals.require counts a and b only: sign the vote as one of them"),
    ],
)  # fmt: skip
def test_a_refused_user_of_the_socket_learns_what_would_help(require, advice):
    rules = Rules(require=require, allow=(Allow(approver="a"),))
    given = Given(approval(resource=ME), CONTROL, NOON, "uid 0")
    found = objection(given, as_vote(given, EVENT, 1, NOON), EVENT, rules)
    assert found == Refusal("unauthorized", f"uid 0 is not in approvals.allow{advice}")


def test_an_identified_sender_cannot_vote_under_another_name():
    said = approval(resource=ME, approver="billing")
    assert against(said, identity="orders") == "unauthorized"
    assert against(said, identity="billing") is None
    assert against(approval(resource=ME), identity="orders") is None


@pytest.mark.parametrize(
    ("identity", "claimed", "known_as", "verified"),
    [
        ("cn=orders", None, "cn=orders", True),
        (None, "orders", "orders", False),
        (None, None, "bus", False),
    ],
)
def test_a_name_is_what_was_verified_else_what_is_claimed_else_the_channel(
    identity, claimed, known_as, verified
):
    vote = as_vote(Given(approval(approver=claimed), "bus", NOON, identity), EVENT, 1, NOON)
    assert (vote.approver, vote.verified) == (known_as, verified)
    assert vote.about == Announced("Reboot", (ME, OTHER), NOON + NOTICE)


def test_each_vm_must_be_approved_for():
    mine = cast()
    found = judge(EVENT, [mine], EACH, NOON)
    assert (found.satisfied, found.have, found.missing) == (False, (ME,), (OTHER,))
    theirs = cast(approver="billing", resource=OTHER.upper(), at=NOON + SECOND)
    found = judge(EVENT, [mine, theirs], EACH, NOON + SECOND)
    assert (found.satisfied, found.missing, found.since) == (True, (), NOON + SECOND)
    assert found.last == theirs


def test_two_votes_for_one_vm_are_not_votes_for_two():
    assert not judge(EVENT, [cast(), cast(approver="billing")], EACH, NOON).satisfied


def test_one_approval_is_enough_under_any():
    assert judge(EVENT, [], ANY, NOON).missing == ("any",)
    found = judge(EVENT, [cast()], ANY, NOON)
    assert (found.satisfied, found.have, found.missing) == (True, ("orders",), ())


def test_no_votes_are_never_enough_not_even_for_an_event_without_vms():
    for rules in (EACH, ANY):
        assert not judge(replace(EVENT, resources=()), [], rules, NOON).satisfied
        alone = cast(resource="", about=Announced("Reboot", (), EVENT.not_before))
        assert judge(replace(EVENT, resources=()), [alone], rules, NOON).satisfied


def test_it_has_been_enough_since_the_last_vm_and_later_votes_move_nothing():
    votes = [
        cast(),
        cast(resource=OTHER, at=NOON + SECOND),
        cast(approver="late", at=NOON + 9 * SECOND),
    ]
    assert judge(EVENT, votes, EACH, NOON + NOTICE).since == NOON + SECOND
    assert judge(EVENT, votes, ANY, NOON + NOTICE).since == NOON


def test_a_hold_keeps_everything_waiting_until_it_expires():
    votes = [cast(), cast(approver="billing", decision="hold", at=NOON + SECOND)]
    end = NOON + SECOND + ANY.hold_timeout
    found = judge(EVENT, votes, ANY, end - SECOND)
    assert (found.satisfied, found.holds, found.until) == (False, (f"billing@{ME}",), end)
    found = judge(EVENT, votes, ANY, end)
    assert (found.satisfied, found.holds, found.until, found.since) == (True, (), None, end)


def test_a_release_lifts_the_hold_and_is_no_approval():
    release = cast(approver="billing", decision="release", at=NOON + SECOND)
    assert not judge(EVENT, [release], ANY, NOON + SECOND).satisfied
    found = judge(EVENT, [cast(), release], ANY, NOON + SECOND)
    assert (found.satisfied, found.since) == (True, NOON + SECOND)


def test_an_approval_that_lifts_its_own_hold_makes_it_enough_from_then_on():
    lifted = cast(approver="billing", at=NOON + SECOND, lifts=True)
    assert judge(EVENT, [cast(), lifted], ANY, NOON + SECOND).since == NOON + SECOND


def test_a_release_without_a_resource_lifts_all_holds_of_its_approver_only():
    holds = [cast(approver=name, decision="hold") for name in ("a", "b")]
    lifted = cast(approver="a", decision="release", resource="", at=NOON + SECOND)
    assert judge(EVENT, [*holds, lifted], ANY, NOON).holds == (f"b@{ME}",)
    again = cast(approver="a", decision="hold", at=NOON + 2 * SECOND)
    assert judge(EVENT, [again, lifted], ANY, NOON).holds == (f"a@{ME}",)


def test_a_hold_for_all_is_named_by_its_approver_alone():
    assert judge(EVENT, [cast(decision="hold", resource="")], ANY, NOON).holds == ("orders",)


def test_the_first_vm_leads_and_the_others_take_over_in_order():
    event = replace(EVENT, resources=("a", "b", "c"))
    assert [turn(event, name, "own", EACH) for name in ("A", "b", "C")] == [0, 1, 2]


def test_a_bridge_on_another_vm_acts_last_or_never():
    assert turn(EVENT, "elsewhere", "own", EACH) is None
    assert turn(EVENT, None, "own", EACH) is None
    assert turn(EVENT, "elsewhere", "all", EACH) == 2
    assert turn(EVENT, None, "all", EACH) == 2


def test_without_a_leader_and_for_terminate_all_bridges_act_immediately():
    for event, rules in (
        (EVENT, Rules(leader="none")),
        (replace(EVENT, event_type="Terminate"), EACH),
    ):
        assert [turn(event, name, "own", rules) for name in (ME, OTHER)] == [0, 0]


VOTES = st.builds(
    lambda who, what, when, where: cast(
        approver=who, decision=what, at=NOON + timedelta(seconds=when), resource=where
    ),
    st.sampled_from("abc"),
    st.sampled_from(["approve", "hold", "release"]),
    st.integers(0, 1200),
    st.sampled_from([ME, OTHER, ""]),
)


@given(st.lists(VOTES, max_size=8), st.integers(0, 2000), st.sampled_from([EACH, ANY]))
def test_nothing_is_satisfied_without_approvals_or_over_a_hold_in_any_order(votes, now, rules):
    latest = list({vote.voter: vote for vote in votes}.values())
    moment = NOON + timedelta(seconds=now)
    found = judge(EVENT, latest, rules, moment)
    if found.satisfied:
        assert found.last is not None
        assert not found.missing
        assert not found.holds
        assert found.since is not None
    backwards = judge(EVENT, latest[::-1], rules, moment)
    assert (found.satisfied, found.since) == (backwards.satisfied, backwards.since)


def test_holds_in_force_are_listed_with_their_ends():
    first = cast(decision="hold", approver="a", resource="")
    second = cast(decision="hold", approver="b", resource="", at=NOON + SECOND)
    counted = CountedVotes(EVENT, ANY, [second, first])
    end = NOON + ANY.hold_timeout
    assert counted.held(NOON) == [(first, end), (second, end + SECOND)]
    assert counted.held(end) == [(second, end + SECOND)]
    assert counted.held(end + SECOND) == []
