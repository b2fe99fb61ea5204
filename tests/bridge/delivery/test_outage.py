"""A series of failed batches: how long it lasts, how it splits, and whose turn is next."""

import pytest
from support.journal_tools import about

from bridge.delivery.outage import BREATH, QUICK, SinkOutage
from bridge.delivery.rules import MOST
from bridge.journal import Row


def rows(*numbers: int) -> list[Row]:
    return [Row(number, about(f"K{number}"), 0.0) for number in numbers]


def failed(outage: SinkOutage, times: int, batch: list[Row]) -> None:
    for _ in range(times):
        outage.count(batch)


def test_there_is_no_outage_before_a_failure_nor_after_a_success():
    outage = SinkOutage(500)
    assert not outage.lasts
    outage.count(rows(1, 2))
    assert outage.lasts
    outage.end()
    assert not outage.lasts


def test_batches_are_halved_by_each_failure_and_doubled_by_each_success():
    outage = SinkOutage(8)
    sizes = []
    for size in (8, 4, 2, 1):
        outage.count(rows(*range(1, size + 1)))
        sizes.append(outage.limit)
    for _ in range(5):
        outage.end()
        sizes.append(outage.limit)
    assert sizes == [4, 2, 1, 1, 2, 4, 8, 8, 8]


def test_a_lost_connection_says_nothing_about_the_size_of_batches():
    outage = SinkOutage(8)
    outage.count([])
    assert (outage.lasts, outage.limit) == (True, 8)


def test_pauses_are_short_while_rows_may_be_the_reason_and_then_grow():
    outage = SinkOutage(500)
    outage.count(rows(1))
    assert outage.pace == (1, BREATH / 16, BREATH)
    failed(outage, QUICK - 1, rows(1))
    assert outage.pace == (QUICK, BREATH / 16, BREATH)
    failed(outage, 3, rows(1))
    assert outage.pace == (3, BREATH, MOST)


def test_the_turn_moves_to_where_the_last_batch_ended():
    outage = SinkOutage(500)
    outage.begin(90, rows(1, 2, 7))
    outage.count(rows(1, 2, 7))
    assert outage.turn == 7
    outage.reached = 12
    assert outage.turn == 7
    outage.count(rows(9, 12))
    assert outage.turn == 12


def test_one_new_row_that_fails_changes_neither_the_pause_nor_the_turn():
    outage = SinkOutage(500)
    outage.begin(90, rows(1, 2))
    failed(outage, 70, rows(1))
    before = (outage.pace, outage.turn, outage.limit)
    assert not outage.count_new(rows(91))
    assert (outage.pace, outage.turn, outage.limit) == before
    assert outage.newest == 91


@pytest.mark.parametrize("so_far", [1, QUICK + 9])
def test_of_several_new_rows_one_may_be_the_reason_so_the_search_begins_with_them(so_far):
    outage = SinkOutage(500)
    outage.begin(90, rows(1, 2))
    failed(outage, so_far, rows(1))
    batch = rows(91, 93, 94, 99)
    assert outage.count_new(batch)
    outage.count(batch)
    assert (outage.newest, outage.turn, outage.limit) == (99, 90, 2)
    assert outage.pace == (1, BREATH / 16, BREATH)
