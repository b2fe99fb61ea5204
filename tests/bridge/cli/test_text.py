from datetime import UTC, datetime

import pytest

from bridge.cli.text import age, clock, countdown, cut, names, pairs, printable, table, yes_no

NOW = datetime(2026, 11, 15, 18, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (7, "7"),
        ("Zürich", "Zürich"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u202eabc", "\\u202eabc"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_does_not_print_is_escaped(value, shown):
    assert printable(value) == shown


def test_columns_are_as_wide_as_their_widest_cell():
    assert table(("A", "LONG"), [("xyz", 1), ("y", None)]) == "A    LONG\nxyz  1\ny    -\n"


def test_pairs_are_aligned():
    assert pairs((("a", 1), ("long", "x\ny"))) == "a     1\nlong  x\\ny\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (None, "-"),
        ("2026-11-15T18:12:30Z", "18:12:30Z (in 12m)"),
        ("2026-11-15T17:59:58Z", "17:59:58Z (2s ago)"),
        ("2026-11-15T18:00:00Z", "18:00:00Z (now)"),
        ("2026-11-17T18:00:00Z", "2026-11-17 18:00:00Z (in 2d)"),
        ("0001-01-01T00:00:00Z", "1-01-01 00:00:00Z (739934d ago)"),
    ],
)
def test_a_time_says_how_far_away_it_is(text, shown):
    assert clock(text, NOW).replace("0001", "1") == shown


def test_ages_are_never_negative():
    assert age("2026-11-15T17:00:00Z", NOW) == "1h"
    assert age("2026-11-15T19:00:00Z", NOW) == "0s"
    assert age(None, NOW) == "-"


def test_many_names_are_cut():
    assert names([]) == "-"
    assert names(["a", "b", "c"]) == "a, b, c"
    assert names(list("abcdef")) == "a, b, c +3"


def test_what_is_not_known_is_unknown():
    assert [yes_no(value) for value in (True, False, None)] == ["yes", "no", "unknown"]


def test_a_table_fits_the_terminal_and_keeps_the_column_that_is_typed():
    rows = [("602D9444", "x" * 50, "y" * 20, 7)]
    for width in (80, 60, 40):
        made = table(("ID", "LONG", "OTHER", "N"), rows, width).splitlines()
        assert max(map(len, made)) <= width
        assert made[1].startswith("602D9444  xx")
        assert made[1].endswith(" 7")
    assert cut("FrontEnd_IN_0 +12", 12) == "FrontEn… +12"
    assert "…" not in table(("ID", "LONG", "OTHER", "N"), rows)


def test_notes_stand_below_their_row_on_a_terminal_and_beside_it_in_a_pipe():
    rows = [("bus", 1, "no route to host"), ("log", 2, None)]
    heads = ("SINK", "WAITING", "ERROR")
    assert table(heads, rows, 40, notes=True) == (
        "SINK  WAITING\nbus   1\n    no route to host\nlog   2\n"
    )
    assert table(heads, rows, notes=True).splitlines()[1] == "bus   1        no route to host"


def test_long_values_continue_below_themselves():
    made = pairs((("a", "one two three four five six"), ("long", 1)), 26)
    assert made == "a     one two three four\n      five six\nlong  1\n"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-3, "now"),
        (0.9, "now"),
        (9.9, "9s"),
        (723, "12m 03s"),
        (11520, "3h 12m"),
        (100800, "1d 04h"),
    ],
)
def test_a_countdown_has_two_units(seconds, shown):
    assert countdown(seconds) == shown
