"""What happens to a vote later: when it lapses, still counts, or is older than another."""

from dataclasses import replace

import pytest
from support.ballots import cast
from support.world import ME, NOON, NOTICE, OTHER, SECOND, scheduled_event

from bridge.policy.judge import Rules, judge
from bridge.policy.votes import Approval, Given, lapsed, older, renewed, unchanged

EVENT = scheduled_event()
EACH = Rules()


@pytest.mark.parametrize(
    ("change", "over"),
    [
        ({}, False),
        ({"resources": (OTHER, ME.upper())}, False),
        ({"resources": (ME,)}, False),
        ({"resources": (ME, OTHER, "third")}, True),
        ({"resources": ("third",)}, True),
        ({"event_type": "Freeze"}, False),
        ({"event_type": "REBOOT"}, False),
        ({"event_type": "Redeploy"}, True),
        ({"event_type": "Preempt"}, True),
        ({"event_type": "Terminate"}, True),
        ({"event_type": "Teleport"}, True),
        ({"not_before": NOON + 2 * NOTICE}, False),
        ({"not_before": NOON + NOTICE - SECOND}, True),
        ({"not_before": None}, False),
        ({"description": "another"}, False),
    ],
    ids=str,
)
def test_a_vote_lapses_when_the_event_gets_worse(change, over):
    event = replace(EVENT, **change)
    assert lapsed(cast(), event) is over
    if "resources" not in change:
        votes = [cast(), cast(resource=OTHER)]
        assert judge(event, votes, EACH, NOON).satisfied is not over


def test_preempt_and_terminate_are_equally_harsh():
    for before, now in (("Preempt", "Terminate"), ("Terminate", "Preempt")):
        vote = cast(about=replace(cast().about, event_type=before))
        assert not lapsed(vote, replace(EVENT, event_type=now))


def test_repeating_a_valid_vote_changes_nothing():
    again = cast(at=NOON + SECOND, approval="a-2")
    assert unchanged(again, cast(), EVENT, EACH.hold_timeout)
    assert not unchanged(replace(again, decision="hold"), cast(), EVENT, EACH.hold_timeout)
    assert not unchanged(again, cast(), replace(EVENT, event_type="Redeploy"), EACH.hold_timeout)


def test_a_hold_that_has_expired_can_be_given_again():
    hold = cast(decision="hold")
    assert unchanged(replace(hold, at=NOON + SECOND), hold, EVENT, EACH.hold_timeout)
    assert not unchanged(replace(hold, at=NOON + EACH.hold_timeout), hold, EVENT, EACH.hold_timeout)


@pytest.mark.parametrize(
    ("position", "standing", "verdict"),
    [
        ("t/0/9", "t/0/10", True),
        ("t/0/10", "t/0/9", False),
        ("t/0/9", "t/0/9", False),
        ("t/1/9", "t/0/10", False),
        ("u/0/9", "t/0/10", False),
        (None, "t/0/10", False),
        ("t/0/9", None, False),
        ("9", "10", False),
        ("t/0/x", "t/0/10", False),
        ("t/0/²", "t/0/10", False),
    ],
)
def test_in_one_log_the_offset_decides_which_vote_is_older(position, standing, verdict):
    assert older(cast(position=position), cast(position=standing)) is verdict


@pytest.mark.parametrize(
    ("signed", "standing", "verdict"),
    [(0, 1, True), (1, 0, False), (0, 0, False), (None, 1, False), (0, None, False)],
)
def test_elsewhere_the_time_of_signing_decides_which_vote_is_older(signed, standing, verdict):
    first, second = (
        cast(signed_at=None if moment is None else NOON + moment * SECOND)
        for moment in (signed, standing)
    )
    assert older(first, second) is verdict


def test_an_offset_takes_precedence_over_a_signature():
    early, late = cast(position="t/0/1", signed_at=NOON + SECOND), cast(position="t/0/2")
    assert older(early, replace(late, signed_at=NOON))


def test_a_repeated_vote_keeps_its_time_and_gets_the_later_position():
    standing = cast(position="t/0/1", signed_at=NOON)
    again = cast(position="t/0/2", at=NOON + SECOND, approval="a-2")
    found = renewed(standing, again)
    assert (found.approval, found.at) == (standing.approval, standing.at)
    assert (found.position, found.signed_at) == ("t/0/2", NOON)


def test_a_proof_is_news_and_its_repetition_is_not():
    proved = cast(verified=True)
    assert not unchanged(proved, cast(), EVENT, EACH.hold_timeout)
    assert unchanged(cast(), proved, EVENT, EACH.hold_timeout)


def test_no_one_can_use_up_the_ids_of_a_proved_name():
    said = Approval(EVENT.event_id, "k", "a-1")
    keys = {Given(said, "bus", NOON, who).seen_as for who in (None, "orders", "billing")}
    assert len(keys) == 3
    assert Given(said, "bus", NOON).seen_as == "k"


def test_a_voter_is_one_approver_for_one_vm_in_any_case():
    assert cast(resource=ME.upper()).voter == cast(resource=ME.lower()).voter
    assert cast(resource=ME).voter != cast(resource="").voter
    assert cast(approver="orders").voter != cast(approver="billing").voter
