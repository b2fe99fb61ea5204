"""Text that fits in so many bytes, and pairs that remember what was cut."""

import json

import pytest
from support.world import NOON, OBSERVER, scheduled_event

from bridge.core import messages
from bridge.core.state import Transition
from bridge.plugins import read_format
from bridge.plugins.formats import find_format, installed_formats
from sinks.formats._text import Pairs, as_json, cut, filled, listed


@pytest.mark.parametrize(
    ("value", "most", "kept"),
    [
        ("abc", 3, "abc"),
        ("abcdef", 5, "ab…"),
        ("ééé", 5, "é…"),
        ("ab\\=cdef", 6, "ab…"),
        ("ab\\\\cdef", 7, "ab\\\\…"),
    ],
)
def test_neither_a_character_nor_an_escape_is_cut_in_half(value, most, kept):
    assert cut(value, most) == kept
    assert len(kept.encode()) <= most


def test_as_many_whole_names_as_fit_are_listed():
    assert listed(["a", "b"], 10) == "a,b"
    assert listed(["alpha", "beta", "gamma"], 10) == "alpha,+2"
    assert listed(["a"], 10, missing=3) == "a,+3"


def test_what_is_empty_is_left_out_all_the_way_down():
    assert filled({"a": None, "b": {"c": "", "d": 0}, "e": {"f": []}}) == {"b": {"d": 0}}
    assert filled([None]) == [None]


def test_json_is_one_line_for_every_reader():
    text = "a\nb\x7f\x85\u2028\u2029"
    written = as_json({"text": text})
    assert len(written.decode().splitlines()) == 1
    assert json.loads(written) == {"text": text}


UNSAFE = "".join(map(chr, (*range(0x7F, 0xA0), 0x2028, 0x2029)))
KEYS = {
    "pagerduty": {"type": "pagerduty", "routing_key": "x" * 32},
    "template": {"type": "template", "template": '{"it": "{{ data.description }}"}'},
}
PLAIN = {"type": "template", "content_type": "text/plain", "template": "{{ data.description }}"}


@pytest.mark.parametrize("form", [*(KEYS.get(name, name) for name in installed_formats()), PLAIN])
def test_no_format_writes_a_control_character_that_a_terminal_or_a_parser_obeys(form):
    settings = read_format(form)
    opened = find_format(settings.type).open(settings)
    event = scheduled_event(description=f"a{UNSAFE}b", resources=(UNSAFE,))
    found = Transition("scheduled", event, life=1, affected=True)
    cloudevent = messages.transition(found, OBSERVER, NOON, 1)
    text = opened.encode(cloudevent).decode()
    assert not set(text) & set(UNSAFE)
    assert len(text.splitlines()) == 1


def test_pairs_leave_out_what_is_empty_and_remember_what_they_cut():
    pairs = Pairs(str.upper, {"short": 5}, 100)
    pairs.put("empty", None)
    pairs.put("short", "abcdefgh", label="Short")
    pairs.put("long", "abcdefgh")
    pairs.put_names("names", ["x", "y"], missing=1)
    assert pairs.values == {
        "short": "AB…",
        "shortLabel": "Short",
        "long": "ABCDEFGH",
        "names": "X,Y,+1",
    }
    assert pairs.short == ["short", "names"]
