"""The parameters of a query, read and applied."""

from datetime import UTC, datetime

import pytest

from bridge.web.api.event_filter import MOST, EventFilter, read_filter
from bridge.web.problems import ProblemDetails

EVENT = {
    "drill": False,
    "eventType": "Reboot",
    "resources": ["Web-1"],
    "status": "Completed",
    "lastChange": "2026-11-15T18:29:47Z",
}


def test_no_parameters_take_everything():
    found = read_filter({})
    assert (found.pending, found.limit, found.before) == (None, MOST, None)
    assert found.takes(EVENT)
    assert found.takes({**EVENT, "lastChange": None, "resources": None})


def test_a_time_without_a_zone_is_utc_and_the_end_is_not_included():
    moment = datetime(2026, 11, 15, 18, 29, 47, tzinfo=UTC)
    assert read_filter({"from": "2026-11-15T18:29:47"}).since == moment
    assert EventFilter(since=moment).takes(EVENT)
    assert not EventFilter(until=moment).takes(EVENT)
    assert not EventFilter(since=moment).takes({**EVENT, "lastChange": None})


@pytest.mark.parametrize("value", ["²", "1e3", "99999999999999999999", "", "+1"])
def test_only_plain_digits_are_a_number(value):
    with pytest.raises(ProblemDetails):
        read_filter({"limit": value})


@pytest.mark.parametrize(
    ("status", "outcome", "taken"),
    [
        ("Completed", "completed", True),
        ("Completed", "open", False),
        ("Started", "open", True),
        ("Canceled", "canceled", True),
        ("Canceled", "completed", False),
    ],
)
def test_an_outcome_is_what_became_of_the_event(status, outcome, taken):
    assert read_filter({"outcome": outcome}).takes({**EVENT, "status": status}) is taken
