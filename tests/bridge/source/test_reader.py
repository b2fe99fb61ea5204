from datetime import timedelta

import pytest
from support.world import NOON, SECOND, scheduled_event

from bridge.core.model import Document
from bridge.metadata.answers import Answer
from bridge.source.reader import Outage, Reader, azure_now, clock_skew, is_skewed

EMPTY = Answer(None, empty=True)
UNCHANGED = Answer(None)
PENDING = Document(5, (scheduled_event(),))
SHOWN = Answer(PENDING)


def read_empties(reader: Reader, times: list[float], *, tracking: bool = True) -> list:
    return [reader.read(EMPTY, at, tracking=tracking) for at in times]


def test_azures_clock_counts_when_the_two_disagree():
    later = NOON + timedelta(seconds=5)
    assert azure_now(None, NOON) == NOON
    assert azure_now(later, NOON) == later
    assert azure_now(NOON, later) == NOON


def test_our_clock_counts_below_the_precision_of_the_header():
    assert azure_now(NOON, NOON + 1.9 * SECOND) == NOON + 1.9 * SECOND
    assert azure_now(NOON, NOON + 2 * SECOND) == NOON


@pytest.mark.parametrize(
    ("ahead", "skew"), [(0, 0.0), (1.9, 0.0), (-1.9, 0.0), (90.04, 90.0), (-90.06, -90.1)]
)
def test_skew_is_how_far_our_clock_is_ahead(ahead, skew):
    assert clock_skew(NOON, NOON + ahead * SECOND) == skew


def test_without_a_header_the_skew_is_not_known():
    assert clock_skew(None, NOON) is None


def test_a_document_is_a_document():
    reader = Reader()
    assert reader.read(SHOWN, 0.0, tracking=True) is PENDING
    assert reader.read(Answer(Document(6)), 0.0, tracking=True) == Document(6)


def test_unchanged_means_as_before():
    reader = Reader()
    assert reader.read(UNCHANGED, 0.0, tracking=True) is None
    reader.read(SHOWN, 0.0, tracking=True)
    assert reader.read(UNCHANGED, 0.0, tracking=True) is PENDING


def test_while_nothing_is_pending_an_empty_body_is_an_empty_document():
    assert Reader().read(EMPTY, 0.0, tracking=False) == Document(None)


def test_five_empty_bodies_in_a_row_over_ten_seconds_are_trusted():
    reader = Reader()
    reader.read(SHOWN, 0.0, tracking=True)
    assert read_empties(reader, [0, 3, 6, 9, 9.9]) == [None] * 5
    assert read_empties(reader, [10]) == [Document(5)]


def test_four_empty_bodies_are_not_enough_however_long_they_take():
    assert read_empties(Reader(), [0, 100, 200, 300]) == [None] * 4


def test_a_document_in_between_restarts_the_count():
    reader = Reader()
    read_empties(reader, [0, 3, 6, 9])
    reader.read(SHOWN, 0.0, tracking=True)
    assert read_empties(reader, [12, 15, 18, 20]) == [None] * 4


def test_an_error_in_between_restarts_the_count():
    reader = Reader()
    read_empties(reader, [0, 3, 6, 9])
    reader.failed()
    assert read_empties(reader, [12, 15, 18, 20]) == [None] * 4
    assert read_empties(reader, [22]) == [Document(None)]


def test_after_empty_bodies_are_trusted_unchanged_means_empty():
    reader = Reader()
    reader.read(SHOWN, 0.0, tracking=True)
    read_empties(reader, [0, 3, 6, 9, 12])
    assert reader.read(UNCHANGED, 0.0, tracking=True) == Document(5)


MINUTE = 60.0


def test_an_outage_is_published_once_after_it_has_lasted():
    outage = Outage(patience=5 * MINUTE)
    told = [outage.problem(NOON, n * MINUTE) for n in range(8)]
    assert told == [False] * 5 + [True, False, False]
    assert outage.since == NOON


def test_only_the_end_of_a_published_outage_is_published():
    outage = Outage(patience=5 * MINUTE)
    outage.problem(NOON, 0.0)
    assert not outage.good()
    assert not outage.problem(NOON, 6 * MINUTE)
    assert outage.problem(NOON, 11 * MINUTE)
    assert outage.good()
    assert not outage.good()


def test_an_outage_published_before_a_restart_is_not_published_again():
    outage = Outage(5 * MINUTE, since=NOON, told=True)
    assert not outage.problem(NOON, 60 * MINUTE)
    assert outage.good()


def test_a_clock_near_the_limit_does_not_change_its_state_with_every_answer():
    assert not is_skewed(60.0, before=False)
    assert is_skewed(-60.1, before=False)
    assert is_skewed(-56.0, before=True)
    assert not is_skewed(55.0, before=True)
