"""What a CloudEvent says, read so that no format stumbles over what is absent or odd."""

import pytest
from support.siem_events import of_kind

from sinks.formats._news import LARGEST, read


def test_a_transition_is_about_a_scheduled_event():
    news = read(of_kind("started"))
    assert (news.family, news.word, news.category) == (
        "transition", "started", "ScheduledEvent/Started",
    )  # fmt: skip
    assert news.class_id.endswith(".started")


def test_an_outcome_is_about_an_approval():
    news = read(of_kind("approval.granted"))
    assert (news.family, news.word, news.category) == ("approval", "granted", "Approval/Granted")


@pytest.mark.parametrize(
    ("value", "number"), [(3, 3), (2.6, 3), (True, None), ("3", None), (LARGEST * 2, None)]
)
def test_only_a_number_of_64_bits_is_a_number(value, number):
    assert read(of_kind("started", durationInSeconds=value)).integer("durationInSeconds") == number


@pytest.mark.parametrize(
    ("value", "names"), [(["a", "", 1, "b"], ["a", "b"]), ("a", []), (None, [])]
)
def test_names_are_the_texts_of_a_list(value, names):
    assert read(of_kind("started", resources=value)).names("resources") == names


@pytest.mark.parametrize(
    ("value", "moment"),
    [("1970-01-01T00:00:01Z", 1000), ("0001-01-01T00:00:00Z", None), ("soon", None), (7, None)],
)
def test_a_time_is_in_milliseconds_and_the_year_1_is_none(value, moment):
    assert read(of_kind("started", notBefore=value)).moment("notBefore") == moment


def test_it_says_when_the_cloudevent_itself_was_cut():
    assert not read(of_kind("started")).is_cut
    assert read(of_kind("started", resourcesTruncated=3)).is_cut


def test_the_eventids_of_a_snapshot_are_listed():
    pending = [{"eventId": "A"}, {"eventId": None}, "odd", {"eventId": "B"}]
    assert read(of_kind("source.snapshot", pending=pending)).pending == ["A", "B"]
    assert read(of_kind("source.snapshot", pending=None)).pending == []
