"""The outcome of an approval as a CloudEvent: the same on every bridge, and never too large."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ballots import cast
from support.world import EVENT_ID, ME, NOON, NOTICE, OBSERVER, OTHER, SECOND, scheduled_event

from bridge.approvals.outcomes import Cause, Outcome, cause_given, cause_of, outcome
from bridge.core.envelope import LIMIT
from bridge.core.observer import Observer
from bridge.core.state import Tracked
from bridge.policy.judge import Judgment, Rules, as_vote, judge
from bridge.policy.votes import Approval, Given

SCHEMA = Path(__file__).parents[3] / "schemas" / "approval-outcome.v1.schema.json"
VALID = jsonschema_rs.validator_for(json.loads(SCHEMA.read_text()), validate_formats=True)
KNOWN = Tracked(scheduled_event(EVENT_ID.lower()), life=2, announced=True, affected=True)
CAUSE = cause_of(cast(reason="drained", position="t/0/7"))


def told(kind="recorded", **more):
    return Outcome(**{"kind": kind, "event_key": EVENT_ID, "cause": CAUSE, "known": KNOWN, **more})


def written(each: Outcome, observer: Observer = OBSERVER, now=NOON):
    made = outcome(each, observer, now)
    VALID.validate(made.data)
    return made


def test_it_names_its_cause_and_the_event_and_what_is_missing():
    judgment = judge(KNOWN.event, [cast()], Rules(), NOON)
    made = written(told(judgment=judgment, policy="each-resource", would_grant=False))
    assert made.attributes["causationid"] == "a-1"
    assert made.attributes["subject"] == made.attributes["correlationid"] == EVENT_ID
    data = made.data
    assert data["votes"] == {"have": [ME], "missing": [OTHER], "holds": []}
    assert (data["approver"], data["reason"], data["position"]) == ("orders", "drained", "t/0/7")
    assert (data["notBefore"], data["noticeSeconds"]) == ("2026-11-15T12:15:00Z", 900)
    assert (data["resources"], data["wouldGrant"], data["postedAt"]) == ([ME, OTHER], False, None)


@pytest.mark.parametrize("kind", ["granted", "failed"])
def test_the_end_of_an_incarnation_has_one_id_on_every_bridge(kind):
    ids = {
        written(told(kind), OBSERVER).id,
        written(told(kind, cause=replace(CAUSE, key="another")), Observer(), NOON + SECOND).id,
    }
    assert len(ids) == 1
    later = written(told(kind, known=replace(KNOWN, life=3)))
    assert later.id not in ids


@pytest.mark.parametrize("kind", ["recorded", "refused"])
def test_an_answer_has_the_id_of_what_it_answers(kind):
    assert written(told(kind)).id == written(told(kind), Observer(), NOON + NOTICE).id
    others = [
        told(kind, cause=replace(CAUSE, key="another")),
        told(kind, reason="superseded"),
        told(kind, event_key=None),
    ]
    assert len({written(each).id for each in [told(kind), *others]}) == 4


@pytest.mark.parametrize(
    ("kind", "reason", "severity"),
    [
        ("recorded", None, 9),
        ("granted", None, 9),
        ("refused", "expired", 13),
        ("refused", "unauthorized", 17),
        ("refused", "replayed", 17),
        ("failed", "expired", 18),
    ],
)
def test_a_possible_forgery_is_logged_more_severely(kind, reason, severity):
    made = written(told(kind, reason=reason))
    assert made.attributes["severitynumber"] == severity
    assert made.data["reason"] == (reason or "drained")


def test_what_names_no_event_is_about_the_vm():
    cause = Cause("sha256-00", "sha256-00", None, None, "bus")
    made = written(Outcome("refused", None, cause, reason="malformed", detail="it is not JSON"))
    assert made.attributes["subject"] == ME
    assert "correlationid" not in made.attributes
    assert (made.data["eventId"], made.data["resources"], made.data["decision"]) == (None, [], None)


def test_a_vote_and_its_message_have_the_same_cause():
    given_ = Given(
        Approval(EVENT_ID, "k", "a-1", "hold", None, ME, "x"), "bus", NOON, "cn", "t/0/1"
    )
    assert cause_of(as_vote(given_, KNOWN.event, 1, NOON)) == cause_given(given_)


def test_a_crowd_of_vms_still_fits():
    crowd = tuple(f"machine-{number:05}" for number in range(5000))
    known = replace(KNOWN, event=replace(KNOWN.event, resources=crowd))
    judgment = Judgment(satisfied=False, have=crowd[:100], missing=crowd[100:])
    made = written(told(known=known, judgment=judgment))
    assert len(made.body) <= LIMIT
    assert made.data["resourcesTruncated"] > 0


@given(st.text(), st.text(min_size=1), st.text())
def test_any_approver_name_can_be_recorded(approver, approval, said):
    cause = replace(CAUSE, approver=approver, approval=approval, said=said)
    made = written(told(cause=cause))
    assert made.attributes["causationid"].isascii()
