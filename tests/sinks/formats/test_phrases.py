"""The phrases from which sentences about a scheduled event are made."""

from datetime import UTC, datetime

import pytest

from sinks.formats._phrases import Story, list_facts

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
DUE = "2026-11-15T12:15:00Z"


def story(kind="scheduled", **data):
    usual = {"eventId": "A", "eventType": "Reboot", "resources": ["web-1"], "notBefore": DUE}
    return Story(kind, NOON, {**usual, **data}, {"observer": "web-1"})


@pytest.mark.parametrize(
    ("data", "what", "does"),
    [
        ({}, "Reboot of web-1", "reboot web-1"),
        ({"eventType": "Defragment"}, "Defragment of web-1", "carry out Defragment on web-1"),
        ({"resources": []}, "Reboot of no VM by name", "reboot no VM by name"),
        ({"resourcesTruncated": 2}, "Reboot of web-1 and 2 more", "reboot web-1 and 2 more"),
    ],
)
def test_what_happens_and_to_whom(data, what, does):
    assert (story(**data).what, story(**data).does) == (what, does)


def test_an_unknown_event_is_named_by_its_id():
    assert story(eventType=None).what == "scheduled event A"


def test_what_is_ahead_says_how_far():
    assert story().ahead == "In 15 min"
    assert story(notBefore="2026-11-15T11:00:00Z").ahead is None
    assert story(notBefore=None).due is None


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "none expected"), (30, "about 30 s"), (-1, "of unknown length"), (None, None)],
)
def test_how_long_an_interruption_may_be(seconds, said):
    assert dict(list_facts(story(durationInSeconds=seconds))).get("Interruption") == said


def test_a_fact_that_is_not_known_is_not_listed_and_what_is_over_has_no_time_to_come():
    assert [name for name, _ in list_facts(story())] == [
        "Event", "Type", "VMs", "Not before", "Seen by",
    ]  # fmt: skip
    assert "Not before" not in dict(list_facts(story("started")))
