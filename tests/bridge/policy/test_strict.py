"""Fields that a careless reader would skip: a mistyped hold must never become an approval."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.policy.message import LARGEST, MalformedApproval, read
from bridge.policy.strict import misread, misread_attribute

EVENT_ID = "602d9444-d2cd-49c7-8624-8643e7171297"


def taken(**said) -> bool:
    try:
        read(json.dumps({"eventId": EVENT_ID, **said}).encode(), ())
    except MalformedApproval:
        return False
    return True


@pytest.mark.parametrize(
    "name",
    ["desicion", "decison", "Decision", "DECISION", "decisions", "deci_sion", "descision", "decisión",
     "Resource", "resources", "resorce", "ressource", "resource_", "RESOURCE", "reosurce",
     "Seen", "sene", "seeen", "Approver", "aprover", "approvers", "EventId", "eventID", "event_id",
     "eventIds", "startRequests", "StartRequest"],
)  # fmt: skip
@pytest.mark.parametrize("value", ["x", 1, None, ["vm-0"]], ids=repr)
def test_a_field_that_is_nearly_one_of_ours_is_refused(name, value):
    assert not taken(**{name: value})


@pytest.mark.parametrize(
    "more",
    [{"action": "hold"}, {"vote": "HOLD"}, {"verdict": " Release "}, {"state": "approve"},
     {"vote": {"is": ["hold"]}}, {"votes": ["hold"]}, {"hold": True}, {"Hold": "yes"},
     {"approved": False}, {"approve": False}, {"released": 0}, {"held": 1}, {"x": {"hold": True}}],
    ids=str,
)  # fmt: skip
def test_an_unknown_field_that_speaks_of_a_decision_is_refused(more):
    assert not taken(**more)
    assert not taken(**more, decision="approve")


@pytest.mark.parametrize(
    "more",
    [{"description": "on hold for now"}, {"source": "x"}, {"position": 7}, {"version": 2}, {"later": {"v": 2}},
     {"DocumentIncarnation": 4}, {"eventType": "Reboot"}, {"sender": "x"}, {"time": "noon"},
     {"reason": "hold"}, {"id": "hold"}, {"duration": 9}, {"labels": ["a", "b"]}, {"ID": "x"}],
    ids=str,
)  # fmt: skip
def test_other_unknown_fields_are_ignored(more):
    assert taken(**more)


def test_the_answer_says_what_was_probably_meant():
    assert (
        misread({"Resource": "vm-0"}) == "the field 'Resource' is unknown; did you mean resource?"
    )
    assert misread({"action": "hold"}) == (
        "the field 'action' is unknown, and says approve, hold or release; only decision may"
    )


@pytest.mark.parametrize("more", [{"decision": "hold"}, {"Resource": "vm-0"}, {"verdict": "hold"}])
def test_the_attributes_of_a_cloudevent_are_no_place_for_a_decision(more):
    assert misread_attribute(more)


@pytest.mark.parametrize(
    "more", [{"source": "/r"}, {"subject": "hold"}, {"traceparent": "x"}, {"data": "hold"}]
)
def test_other_attributes_are_ignored(more):
    assert misread_attribute(more) is None


def test_no_number_of_fields_hides_one_from_the_check():
    many = {f"f{number}": number for number in range(4000)}
    assert taken(**many)
    assert not taken(**many, desicion="hold")


def test_the_check_does_not_grow_faster_than_the_message():
    """A ratio, not a time: a message four times as large may take about four times as long."""

    def cost(count: int) -> float:
        fields = {f"decis{number:05}": "hol" for number in range(count)}
        began = time.process_time()
        misread(fields)
        return time.process_time() - began

    cost(1000)
    few, many = min(cost(1000) for _ in range(3)), min(cost(4000) for _ in range(3))
    assert many < 16 * few
    deep = b'{"eventId": "a", "x": ' + b"[" * 900 + b"]" * 900 + b"}"
    assert len(deep) < LARGEST
    assert read(deep, ())


WORDS = st.sampled_from(["decision", "resource", "seen", "approver", "eventId"])


@given(WORDS, st.data())
def test_no_single_slip_goes_unnoticed(word, data):
    place = data.draw(st.integers(0, len(word) - 1))
    letter = data.draw(st.sampled_from("abcdefghijklmnopqrstuvwxyzABCXYZ"))
    other = data.draw(st.integers(0, len(word) - 1))
    swapped = list(word)
    swapped[place], swapped[other] = swapped[other], swapped[place]
    slips = [
        word[:place] + word[place + 1 :],
        word[:place] + letter + word[place:],
        word[:place] + letter + word[place + 1 :],
        "".join(swapped),
        word.upper(),
        word.title(),
    ]
    for slip in slips:
        assert slip == word or misread({slip: "x"}), slip


@given(st.dictionaries(st.text(), st.none() | st.text() | st.integers()))
def test_a_taken_message_never_mentions_a_decision_outside_decision(fields):
    words = {"approve", "hold", "release"}
    said = {str(value).strip().casefold() for name, value in fields.items() if name not in KNOWN}
    if misread(fields) is None:
        assert not said & words


KNOWN = {"eventId", "approver", "resource", "decision", "reason", "seen", "id", "StartRequests"}
