"""Near misses of a word, and the names that mark a CloudEvent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.common.spelling import marks_cloudevent, one_slip, plain


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Spec-Version", "specversion"),
        ("spec_version", "specversion"),
        ("deci\u200bsion", "decision"),
        ("ｄｅｃｉｓｉｏｎ", "decision"),  # noqa: RUF001  letters that only look like ours
        ("", ""),
    ],
)
def test_only_letters_and_digits_count(name, found):
    assert plain(name) == found


@pytest.mark.parametrize("name", ["seen", "sen", "seeen", "sewn", "sene", "nees"])
def test_one_slip_is_one(name):
    assert one_slip(name, "seen")


@pytest.mark.parametrize("name", ["", "se", "seenen", "ness", "scan", "unseen"])
def test_two_slips_are_two(name):
    assert not one_slip(name, "seen")


@given(st.text(), st.text())
def test_a_slip_is_one_in_both_directions(one, other):
    assert one_slip(one, other) == one_slip(other, one)


@pytest.mark.parametrize(
    "name",
    [
        "specversion",
        "SPECVERSION",
        "spec_version",
        "ce-id",
        "CE_anything",
        "cloudEventsVersion",
        "cloudEvents:specversion",
        "cloudevents_specversion",
        "specificationVersion",
        "specverison",
    ],
)
def test_any_spelling_of_specversion_and_any_prefix_mark_a_cloudevent(name):
    assert marks_cloudevent(name)


@pytest.mark.parametrize("name", ["version", "id", "type", "eventId", "cedar", "center", "ce"])
def test_other_names_do_not(name):
    assert not marks_cloudevent(name)
