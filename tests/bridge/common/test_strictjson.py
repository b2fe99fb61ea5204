import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.common.strictjson import decode, read_object

SMALL = st.integers(-(2**63), 2**63 - 1)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | SMALL
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_python_writes_is_read_back(value):
    assert decode(json.dumps(value).encode()) == value


@pytest.mark.fuzz
@given(st.binary(max_size=100))
def test_any_bytes_are_a_value_or_a_value_error(body):
    try:
        decode(body)
    except ValueError:
        return


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"{",
        b'{"a": 1} trailing',
        b"NaN",
        b"[Infinity]",
        b"[-Infinity]",
        b"1e999",
        b"-1e999",
        b"9223372036854775808",
        b"-9223372036854775809",
        b"1" * 10_000,
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xff\xfe{\x00}\x00",
        '{"a": "ä"}'.encode("latin-1"),
    ],
    ids=lambda body: repr(body[:20]),
)
def test_what_is_not_strict_json_is_a_value_error(body):
    with pytest.raises(ValueError):
        decode(body)


def test_the_largest_numbers_of_64_bits_are_read():
    assert decode(b"[9223372036854775807, -9223372036854775808]") == [2**63 - 1, -(2**63)]


def test_a_byte_order_mark_is_skipped():
    assert decode(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_the_last_of_equal_names_counts():
    assert decode(b'{"a": 1, "a": 2}') == {"a": 2}


def test_an_object_is_read_from_foreign_json_and_anything_else_is_an_empty_one():
    assert read_object(b'{"code": 0}') == {"code": 0}
    for body in (b"", b"<html>", b"[1]", b"null", b'"text"', b"\xff", b"[" * 100_000):
        assert read_object(body) == {}
