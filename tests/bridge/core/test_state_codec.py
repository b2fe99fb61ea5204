import json
from dataclasses import asdict
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.world import NOON, SECOND, scheduled_event, started

from bridge.core.diff import with_past
from bridge.core.model import writable
from bridge.core.state import Tracked, decode_tracked, encode_tracked, moment

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "known",
    [
        Tracked(scheduled_event()),
        Tracked(started(scheduled_event()), life=3, announced=True, affected=False),
        Tracked(
            scheduled_event(not_before=None, duration=0.5, description=None, resources=()),
            affected=True,
            states={"digest": 2},
            missing_since=NOON + SECOND / 7,
            booted=True,
        ),
        with_past(Tracked(scheduled_event(), since=NOON, watched=True), NOON),
    ],
)
def test_what_is_tracked_comes_back_as_it_was(known: Tracked):
    assert decode_tracked(encode_tracked(known)) == known


def as_before(known: Tracked) -> str:
    """As released versions write it, who must still be able to read it."""
    return json.dumps(asdict(known), default=datetime.isoformat, separators=(",", ":"))


@given(extra=st.dictionaries(st.text(), json_values, max_size=3), name=st.text(min_size=1))
def test_whatever_azure_says_comes_back_as_it_was(extra: dict, name: str):
    event = scheduled_event(writable(name), extra=writable(extra), resources=(writable(name),))
    known = with_past(Tracked(event, states={"a": 1}, missing_since=NOON, since=NOON), NOON)
    assert encode_tracked(known) == as_before(known)
    assert decode_tracked(encode_tracked(known)) == known


def test_an_unsupported_value_is_refused():
    with pytest.raises(TypeError, match="cannot write object"):
        encode_tracked(Tracked(scheduled_event(extra={"odd": object()})))


def test_no_time_is_none():
    assert (moment(None), moment("")) == (None, None)
    assert moment(NOON.isoformat()) == NOON
