"""What happens to a vote later: when it lapses, still counts, or is older than another."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.ballots import cast
from support.world import ME, NOON, NOTICE, OTHER, SECOND, scheduled_event

from bridge.policy.judge import Rules, judge
from bridge.policy.votes import REASONS, Approval, Given, lapsed, older, renewed, unchanged

EVENT = scheduled_event()
EACH = Rules()
BRIDGE = Path(__file__).parents[3] / "bridge"


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
    release = replace(cast(), decision="release", resource="", at=NOON + SECOND)
    later = replace(again, at=NOON + 2 * SECOND)
    assert unchanged(later, cast(), EVENT, EACH.hold_timeout, [release])


def test_a_hold_that_has_expired_can_be_given_again():
    hold = cast(decision="hold")
    assert unchanged(replace(hold, at=NOON + SECOND), hold, EVENT, EACH.hold_timeout)
    assert not unchanged(replace(hold, at=NOON + EACH.hold_timeout), hold, EVENT, EACH.hold_timeout)


LOG = "bus@cluster/t/0"


def placed(offset, at=0, log=LOG, **more):
    """A vote at an offset of a log, recorded so many seconds after noon."""
    recorded = None if at is None else NOON + at * SECOND
    return cast(position=f"t/0/{offset}", log=log, recorded=recorded, **more)


@pytest.mark.parametrize(
    ("offset", "standing", "verdict"),
    [
        ("9", "10", True),
        ("10", "9", False),
        ("9", "9", False),
        ("x", "10", False),
        ("²", "10", False),
    ],
)
@pytest.mark.parametrize("decision", ["approve", "hold", "release"])
def test_in_one_log_the_offset_decides_which_vote_is_older(offset, standing, verdict, decision):
    assert older(placed(offset, decision=decision), placed(standing)) is verdict


@pytest.mark.parametrize("log", ["bus@other/t/0", "desk@cluster/t/0", "bus@cluster/t/1", None])
@pytest.mark.parametrize("decision", ["approve", "hold", "release"])
def test_positions_in_two_logs_are_never_compared(log, decision):
    assert not older(placed(9, log=log, decision=decision), placed(10))
    assert not older(placed(9, decision=decision), placed(10, log=log))
    assert not older(placed(9, log=None, decision=decision), placed(10, log=None))


@pytest.mark.parametrize("decision", ["approve", "hold", "release"])
def test_a_lower_offset_that_was_recorded_later_is_in_a_topic_made_anew(decision):
    assert not older(placed(0, at=1, decision=decision), placed(10, at=0))
    assert older(placed(0, at=0, decision=decision), placed(10, at=0))
    assert not older(placed(11, at=-1, decision=decision), placed(10, at=0))


@pytest.mark.parametrize(("at", "standing"), [(None, 0), (0, None), (None, None)])
def test_without_record_times_an_approval_may_be_older_but_a_hold_is_not(at, standing):
    assert older(placed(0, at=at), placed(10, at=standing))
    assert older(placed(0, at=at, decision="release"), placed(10, at=standing, decision="hold"))
    assert not older(placed(0, at=at, decision="hold"), placed(10, at=standing))


def test_a_hold_is_not_dropped_for_its_time_of_signing():
    hold = cast(decision="hold", signed_at=NOON)
    assert not older(hold, cast(signed_at=NOON + SECOND))
    assert older(replace(hold, decision="approve"), cast(signed_at=NOON + SECOND))


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
    early, late = placed(1, signed_at=NOON + SECOND), placed(2, signed_at=NOON)
    assert older(early, late)
    assert not older(late, early)


def test_a_repeated_vote_keeps_its_time_and_gets_the_later_place():
    standing = placed(1, signed_at=NOON)
    again = replace(placed(2, at=1), at=NOON + SECOND, approval="a-2")
    found = renewed(standing, again)
    assert (found.approval, found.at) == (standing.approval, standing.at)
    assert (found.position, found.log, found.recorded) == ("t/0/2", LOG, NOON + SECOND)
    assert found.signed_at == NOON


def test_a_repeated_vote_never_gets_an_earlier_place_or_signature():
    hold = placed(9, at=5, signed_at=NOON + SECOND, decision="hold")
    for again in (placed(2, at=None), placed(2, at=5), cast()):
        found = renewed(hold, replace(again, decision="hold", signed_at=NOON))
        assert (found.position, found.recorded, found.signed_at) == (
            hold.position,
            hold.recorded,
            hold.signed_at,
        )
    anew = renewed(hold, placed(2, at=6, decision="hold"))
    assert (anew.position, anew.recorded) == ("t/0/2", NOON + 6 * SECOND)
    other = renewed(hold, placed(2, at=0, log="bus@other/t/0", decision="hold"))
    assert (other.position, other.log, other.recorded) == ("t/0/2", "bus@other/t/0", NOON)


def test_a_proof_is_news_and_its_repetition_is_not():
    proved = cast(verified=True)
    assert not unchanged(proved, cast(), EVENT, EACH.hold_timeout)
    assert unchanged(cast(), proved, EVENT, EACH.hold_timeout)


def test_no_one_can_use_up_the_ids_of_a_verified_name():
    said = Approval(EVENT.event_id, "k", "a-1")
    keys = {Given(said, "bus", NOON, who).seen_as for who in (None, "orders", "billing")}
    assert len(keys) == 3
    assert Given(said, "bus", NOON).seen_as == "k"


def test_a_voter_is_one_approver_for_one_vm_in_any_case():
    assert cast(resource=ME.upper()).voter == cast(resource=ME.lower()).voter
    assert cast(resource=ME).voter != cast(resource="").voter
    assert cast(approver="orders").voter != cast(approver="billing").voter


def test_every_reason_in_the_code_is_listed():
    """Metrics have a series for each from the start."""
    code = [path.read_text(encoding="utf-8") for path in BRIDGE.rglob("*.py")]
    written = {word for text in code for word in re.findall(r'Refusal\(\s*"([a-z-]+)"', text)}
    assert written <= set(REASONS)
    assert len(REASONS) == len(set(REASONS))
