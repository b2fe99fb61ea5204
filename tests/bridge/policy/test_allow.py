"""Who may vote, and whether a signed vote is fresh: the truth tables."""

import base64
from dataclasses import replace
from datetime import timedelta

import pytest
from pydantic import ValidationError
from support.ballots import cast
from support.world import ME, NOON, NOTICE, OTHER, SECOND, scheduled_event

from bridge.policy.allow import TOLERANCE, Allow, certified, denied, named, speaks_for_all, stale
from bridge.policy.judge import Rules, judge
from bridge.policy.votes import AUTO, SINK, Approval, Given

EVENT = scheduled_event()
HMAC = {"hmac": f"whsec_{base64.b64encode(bytes(32)).decode()}"}
PUBLIC = {"ed25519": f"whpk_{base64.b64encode(bytes(range(32))).decode()}"}


def rule(**keys):
    return Allow.model_validate({"approver": "orders", **keys})


def why(allow, **vote):
    found = denied(allow, cast(**vote), EVENT)
    return found and f"{found.reason}: {found.detail}"


# --- rights --------------------------------------------------------------------------------------


def test_without_entries_everyone_may_vote():
    assert why([], approver="anybody") is None


def test_an_approver_that_is_not_listed_has_no_rights():
    for verified in (False, True):
        assert "billing is not in approvals.allow" in why(
            [rule()], approver="billing", verified=verified
        )


@pytest.mark.parametrize("via", [AUTO, SINK])
def test_votes_by_configured_rules_need_no_entry(via):
    assert why([rule()], approver="somebody", via=via) is None


@pytest.mark.parametrize(
    ("keys", "vote", "said"),
    [
        ({}, {}, None),
        ({"via": "bus"}, {}, None),
        ({"via": "http"}, {}, "may not vote via bus"),
        ({"decisions": ["hold"]}, {}, "may not vote approve"),
        ({"decisions": ["hold"]}, {"decision": "hold"}, None),
        ({"event_types": ["freeze", "REB*"]}, {}, None),
        ({"event_types": ["Freeze"]}, {}, "may not vote on Reboot"),
        ({"resources": ["front*"]}, {}, None),
        ({"resources": ["front*"]}, {"resource": OTHER}, "may not vote for every VM"),
        ({"resources": ["front*"]}, {"resource": ""}, "may not vote for every VM"),
        ({"resources": ["front*", "back*"]}, {"resource": ""}, None),
        ({"keys": [HMAC]}, {}, "must vote with its key, token or certificate"),
        ({"keys": [HMAC]}, {"verified": True}, None),
        ({"keys": [PUBLIC]}, {"verified": True}, None),
        ({"token": "ops"}, {}, "must vote with its key, token or certificate"),
        ({"certificate": "CN=o"}, {}, "must vote with its key, token or certificate"),
        ({"certificate": "CN=o"}, {"verified": True}, None),
        ({"token": "ops"}, {"verified": True}, None),
    ],
    ids=str,
)
def test_an_entry_limits_how_its_approver_may_vote(keys, vote, said):
    found = why([rule(**keys)], **vote)
    assert (found is None) if said is None else (said in found)


def test_one_of_several_entries_is_enough():
    entries = [rule(decisions=["hold"]), rule(event_types=["Reboot"], decisions=["approve"])]
    assert why(entries) is None
    assert why(entries, decision="hold") is None
    assert "may not vote release" in why(entries, decision="release")


def test_only_an_applicable_entry_with_all_resources_allows_a_vote_for_all():
    whole = cast(resource="")
    assert not speaks_for_all([rule()], whole, EVENT)
    assert speaks_for_all([rule(all_resources=True)], whole, EVENT)
    assert not speaks_for_all([rule(all_resources=True, via="http")], whole, EVENT)
    assert not speaks_for_all([rule(all_resources=True)], replace(whole, approver="x"), EVENT)


def test_revoked_rights_invalidate_earlier_votes():
    votes = [cast(), cast(resource=OTHER)]
    assert judge(EVENT, votes, Rules(), NOON).satisfied
    assert judge(EVENT, votes, Rules(allow=(rule(),)), NOON).satisfied
    assert not judge(EVENT, votes, Rules(allow=(rule(resources=[ME]),)), NOON).satisfied
    assert not judge(EVENT, votes, Rules(allow=(rule(approver="x"),)), NOON).satisfied


def test_a_vote_for_all_counts_for_all_only_while_its_right_does():
    whole = cast(resource="")
    assert judge(EVENT, [whole], Rules(allow=(rule(all_resources=True),)), NOON).satisfied
    assert not judge(EVENT, [whole], Rules(allow=(rule(),)), NOON).satisfied
    assert not judge(EVENT, [whole], Rules(), NOON).satisfied


def test_a_token_identifies_the_approver_that_names_it_or_itself():
    assert named([rule(token="t-1")], "t-1") == "orders"
    assert named([rule()], "ops") == "ops"


def test_a_certificate_identifies_only_the_approver_that_names_its_subject():
    assert certified([rule(certificate="CN=o")], "CN=o") == "orders"
    assert certified([rule(approver="CN=o")], "CN=o") == "CN=o"
    assert certified([rule(approver="CN=o", via="http")], "CN=o") == "CN=o"
    assert certified([rule(approver="CN=o"), rule(certificate="CN=o")], "CN=o") == "orders"
    for allow in ([], [rule()], [rule(approver="CN=o", via="bus")], [rule(token="CN=o")]):
        assert certified(allow, "CN=o") is None


@pytest.mark.parametrize(
    "text",
    [
        "CN=orders",
        "CN=a,O=b",
        "CN=a+UID=7,DC=x,DC=y",
        r"CN=M\C3\BCller\, Inc.,O=\ x",
        "1.2.3=a",
        "CN=",
    ],
)
def test_a_subject_may_be_any_that_a_certificate_can_have(text):
    assert rule(certificate=text).certificate == text


@pytest.mark.parametrize(
    "text",
    [
        "orders",
        "CN=a, O=b",
        "/CN=a/O=b",
        "CN = a",
        "CN= a",
        "CN=Müller",
        'CN="a"',
        "CN=a\\",
        "CN=a,",
    ],
)
def test_a_subject_that_no_certificate_would_match_is_refused(text):
    with pytest.raises(ValidationError, match="nameopt RFC2253"):
        rule(certificate=text)


# --- freshness -----------------------------------------------------------------------------------


def given(signed, *, local=False, at=NOON):
    return Given(Approval("E", "k", "a"), "bus", at, "orders", None, signed, local)


@pytest.mark.parametrize(
    ("signed", "local", "reason"),
    [
        (None, False, None),
        (NOON, False, None),
        (NOON + TOLERANCE, False, None),
        (NOON + TOLERANCE + SECOND, False, "unauthorized"),
        (NOON - NOTICE - TOLERANCE, False, None),
        (NOON - NOTICE - TOLERANCE - SECOND, False, "replayed"),
        (NOON - TOLERANCE, True, None),
        (NOON - TOLERANCE - SECOND, True, "unauthorized"),
        (NOON + TOLERANCE, True, None),
        (NOON + TOLERANCE + SECOND, True, "unauthorized"),
    ],
)
def test_a_signature_is_fresh_within_five_minutes_or_since_its_event_was_announced(
    signed, local, reason
):
    found = stale(given(signed, local=local), NOON, since=NOON - NOTICE)
    assert (found and found.reason) == reason


def test_a_vote_signed_before_the_journal_was_created_may_be_a_replay():
    begun = NOON - NOTICE + timedelta(milliseconds=700)
    assert stale(given(NOON - NOTICE), NOON, born=begun) is None, "signatures know whole seconds"
    found = stale(given(NOON - NOTICE - SECOND), NOON, born=begun)
    assert found is not None
    assert found.reason == "replayed"


@pytest.mark.parametrize(
    ("decision", "named", "reason"),
    [
        ("approve", False, "replayed"),
        ("approve", True, None),
        ("hold", False, None),
        ("release", True, "replayed"),
    ],
)
def test_in_a_newer_journal_a_hold_counts_and_an_approval_that_names_the_state(
    decision, named, reason
):
    older = given(NOON - NOTICE)
    said = replace(older, approval=replace(older.approval, decision=decision))
    found = stale(said, NOON, born=NOON - SECOND, since=NOON, named=named)
    assert (found and found.reason) == reason


@pytest.mark.parametrize(
    ("signed", "reason"),
    [(NOON - 2 * SECOND, "replayed"), (NOON - SECOND, "replayed"), (NOON, None)],
)
@pytest.mark.parametrize("decision", ["approve", "hold", "release"])
def test_the_tolerance_does_not_reach_into_another_life(signed, reason, decision):
    said = replace(given(signed), approval=replace(given(signed).approval, decision=decision))
    found = stale(said, NOON, since=NOON + SECOND, ended=NOON - SECOND, named=True)
    assert (found and found.reason) == reason


def test_our_clock_may_be_wrong_when_azure_shows_by_how_much():
    hour = timedelta(hours=1)
    late = given(NOON - hour, local=True)
    assert stale(late, NOON, ahead=hour) is None
    for found in (stale(late, NOON), stale(given(NOON, local=True), NOON, ahead=hour)):
        assert found is not None
        assert found.reason == "unauthorized"


# --- how it is written ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"approver": ""}, "1 to 512"),
        ({"approver": "a\nb"}, "one line"),
        ({"approver": "x" * 513}, "1 to 512"),
        ({"keys": [{}]}, "either hmac or ed25519"),
        ({"keys": [{**HMAC, **PUBLIC}]}, "either hmac or ed25519"),
        ({"keys": [{"hmac": PUBLIC["ed25519"]}]}, "starts with whsec_"),
        ({"keys": [{"ed25519": HMAC["hmac"]}]}, "starts with whpk_"),
        ({"keys": [{"ed25519": "whsk_" + PUBLIC["ed25519"][5:]}]}, "must be a public key"),
        ({"keys": [{"hmac": "whsec_short"}]}, "base64"),
        ({"resources": []}, "at least 1"),
        ({"decisions": []}, "at least 1"),
        ({"decisions": ["veto"]}, "'approve', 'hold' or 'release'"),
    ],
)
def test_a_bad_entry_is_refused(keys, said):
    with pytest.raises(ValidationError) as caught:
        rule(**keys)
    assert said in str(caught.value)


def test_a_key_may_be_in_a_file_that_comes_later(tmp_path):
    file = tmp_path / "key"
    made = rule(keys=[{"hmac": {"file": str(file)}}])
    with pytest.raises(OSError):
        made.keys[0].read()
    file.write_text(HMAC["hmac"])
    assert made.keys[0].read().version == "v1"
