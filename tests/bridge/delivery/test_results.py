import pytest
from support.journal_tools import about

from bridge.delivery.results import MOST_SAID, began, first_gone, given_up, verdict
from bridge.journal import Row, Settlement
from bridge.plugins import Delivered, Gone, Rejected, Unavailable

EVENT = about("A")
HOUR = 3600.0


def row(first: float | None = None, recorded: float = 0.0) -> Row:
    return Row(1, EVENT, recorded, attempts=0, first=first)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (None, Settlement("A/1", "delivered")),
        (Delivered(), Settlement("A/1", "delivered")),
        (Delivered("drained"), Settlement("A/1", "delivered", note="drained")),
        (Delivered("n" * 5000), Settlement("A/1", "delivered", note="n" * MOST_SAID)),
        (Delivered(approves=True), Settlement("A/1", "delivered")),
        (Unavailable("busy"), Settlement("A/1", None, "busy")),
        (Gone("moved away"), Settlement("A/1", None, "moved away")),
        (Rejected("no"), Settlement("A/1", "dead", "no")),
        (Rejected("n" * 5000), Settlement("A/1", "dead", "n" * MOST_SAID)),
        (Rejected(), Settlement("A/1", "dead", "Rejected")),
    ],
)
def test_each_result_has_its_verdict(result, expected):
    assert verdict(row(), result, 1000.0, HOUR) == expected


@pytest.mark.parametrize("result", [Unavailable("busy"), Gone("busy")])
def test_what_was_tried_for_too_long_is_dead(result):
    assert verdict(row(first=0.5), result, HOUR, HOUR).how is None
    dead = Settlement("A/1", "dead", "not delivered within retry.max_age; last: busy")
    assert verdict(row(first=0.0), result, HOUR, HOUR) == dead


def test_a_row_waits_for_a_stopped_sink_since_its_first_attempt_or_since_the_stop():
    assert began(row(first=10.0, recorded=5.0), stopped=20.0) == 10.0
    assert began(row(first=0.0, recorded=5.0), stopped=20.0) == 0.0
    assert began(row(recorded=5.0), stopped=20.0) == 20.0
    assert began(row(recorded=30.0), stopped=20.0) == 30.0


def test_what_is_given_up_says_why_and_was_not_tried():
    said = given_up(row(), "unsubscribed")
    reason = "not delivered within retry.max_age; the sink is stopped: unsubscribed"
    assert said == Settlement("A/1", "dead", reason, tried=False)


def test_one_gone_result_among_many_stops_the_sink():
    gone = Gone("enough")
    assert first_gone([None, Unavailable("x"), gone, Gone("later")]) is gone
    assert first_gone([None, Unavailable("x"), Rejected("y")]) is None
