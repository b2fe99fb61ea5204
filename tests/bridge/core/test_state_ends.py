"""Ends: a mapping of many, of which a successor with one more copies only the latest."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.world import NOON

from bridge.core.state import Ended, Ends

ends = st.builds(lambda life, after: Ended(life, NOON + timedelta(after)), *[st.integers(1, 3)] * 2)
additions = st.lists(st.dictionaries(st.sampled_from("ABCDEF"), ends, max_size=3), max_size=8)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Three are many here, so that both ways of adding are taken."""
    monkeypatch.setattr(Ends, "_MOST_NEW", 3)


def plainly(before: dict[str, Ended], more: dict[str, Ended]) -> dict[str, Ended]:
    return {key: end for key, end in before.items() if key not in more} | more


@given(st.dictionaries(st.sampled_from("ABCXYZ"), ends), additions)
def test_it_is_the_mapping_that_a_copy_would_be_in_the_same_order(first, added):
    found, expected = Ends.of(first), dict(first)
    for more in added:
        found, expected = found.adding(more), plainly(expected, more)
        assert found == expected
        assert list(found) == list(expected)
        assert len(found) == len(expected)


@given(st.dictionaries(st.sampled_from("ABCXYZ"), ends), additions, st.integers(0, 8))
def test_what_it_says_to_write_makes_the_one_before_into_this_one(first, added, back):
    history = [Ends.of(first)]
    for more in added:
        history.append(history[-1].adding(more))
    before, after = history[max(0, len(history) - 1 - back)], history[-1]
    for earlier in (before, dict(before)):
        gone, changed = after.since(earlier)
        written = {key: end for key, end in earlier.items() if key not in gone} | dict(changed)
        assert written == after


def test_one_more_shares_what_was_there_before():
    many = Ends.of({f"E{n}": Ended(1, NOON) for n in range(1000)})
    more = many.adding({"new": Ended(1, NOON)})
    assert more.old is many.old
    assert more.since(many) == ([], [("new", Ended(1, NOON))])
