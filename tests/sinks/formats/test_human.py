"""Text from outside on one safe line, and times, spans and names as people read them."""

from datetime import UTC, datetime, timedelta

import pytest

from sinks.formats import _human as human

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        ("a\r\n b\x00c", "a b c"),
        ("left\u202eright", "leftright"),
        ("ping @Everyone", "ping @\u200bEveryone"),
        ("mail a@b.example", "mail a@b.example"),
        (None, "None"),
    ],
)
def test_cleaned_text_is_one_line_that_mentions_nobody(value, cleaned):
    assert human.clean(value, 100) == cleaned


def test_what_is_too_long_ends_in_an_ellipsis():
    assert human.cut("abcdef", 6) == "abcdef"
    assert human.cut("abcdefg", 6) == "abcde…"


@pytest.mark.parametrize(
    ("names", "more", "said"),
    [
        ([], 0, ""),
        (["a"], 0, "a"),
        (["a", "b"], 0, "a and b"),
        (["a"], 3, "a and 3 more"),
        (["a", "b", "c", "d", "e"], 6, "a, b, c, d and 7 more"),
    ],
)
def test_only_a_few_names_are_listed(names, more, said):
    assert human.list_names(names, more) == said


@pytest.mark.parametrize("text", ["", "soon", "0001-01-01T00:00:00Z", "2026-11-15T12:00:00", None])
def test_a_time_that_means_nothing_is_none(text):
    assert human.read_moment(text) is None


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7200, "2 h"),
        (12000, "3 h 20 min"),
        (172800, "2 days"),
    ],
)
def test_a_span_is_exact_enough_to_act_on(seconds, said):
    assert human.say_span(seconds) == said


def test_a_time_comes_with_how_far_away_it_is():
    moment = "2026-11-15 12:00:00 UTC"
    assert human.say_due(NOON, NOON - timedelta(minutes=15)) == f"{moment} (in 15 min)"
    assert human.say_due(NOON, NOON + timedelta(minutes=15)) == f"{moment} (15 min ago)"


def test_no_command_is_made_of_an_id_that_a_shell_would_read():
    assert human.command("approve", "602D-9444") == "seb approve 602D-9444"
    assert human.command("approve", "x; rm -rf /") is None
