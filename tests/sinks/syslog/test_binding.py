"""Messages by the grammar of RFC 5424, and their frames."""

import re
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cloudevents import HOSTILE, make

from bridge.plugins import CloudEvent, Rejected, severity
from sinks.syslog import settings
from sinks.syslog.binding import Style, frame

# The grammar of RFC 5424, section 6.
MESSAGE = re.compile(
    rb"<(?P<priority>\d{1,3})>1 "
    rb"(?P<time>-|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)) "
    rb"(?P<host>[!-~]{1,255}) (?P<app>[!-~]{1,48}) (?P<process>[!-~]{1,128}) "
    rb"(?P<msgid>[!-~]{1,32}) "
    rb"(?P<data>-|(\[[!#-<>-\\^-~]{1,32}( [!#-<>-\\^-~]{1,32}=\"([^\"\\\]]|\\[\"\\\]])*\")*\])+)"
    rb"( (?P<text>.*))?",
    re.DOTALL,
)
STYLE = Style("daemon", "scheduled-events-bridge", 8192)


def parts(style: Style = STYLE, cloudevent: CloudEvent | None = None, text: bytes = b"x"):
    found = MESSAGE.fullmatch(style.write(cloudevent or make(), text))
    assert found is not None
    return found


def changed(**attributes) -> CloudEvent:
    """With other attributes, None for those that are missing."""
    made = make()
    body = made.body
    for name, value in attributes.items():
        old = f'"{name}":"{made.attributes[name]}",'.encode()
        assert old in body
        body = body.replace(old, b"" if value is None else f'"{name}":"{value}",'.encode(), 1)
    return replace(made, body=body)


def test_a_message_is_header_and_text():
    found = parts(text=b'{"a": 1}')
    assert found["priority"] == b"28"  # daemon (3) times 8, plus warning (4)
    assert found["time"] == b"2026-11-15T18:14:48Z"
    assert found["host"] == b"FrontEnd_IN_0"
    assert (found["app"], found["msgid"]) == (b"scheduled-events-bridge", b"azse.reboot.scheduled")
    assert found["process"].isdigit()
    assert (found["data"], found["text"]) == (b"-", b'{"a": 1}')


@pytest.mark.parametrize("facility", settings.FACILITIES)
def test_the_priority_is_made_of_facility_and_severity(facility):
    priority = int(parts(replace(STYLE, facility=facility))["priority"])
    assert divmod(priority, 8) == (settings.FACILITIES.index(facility), severity(make()).syslog)


@pytest.mark.parametrize(
    ("time", "written"),
    [
        ("2026-11-15T18:14:48.123456789Z", b"2026-11-15T18:14:48.123456Z"),
        ("2026-11-15T18:14:48.5Z", b"2026-11-15T18:14:48.500000Z"),
        ("2026-11-15T20:14:48+02:00", b"2026-11-15T18:14:48Z"),
        ("2026-11-15T18:14:48", b"-"),
        ("yesterday", b"-"),
        (None, b"-"),
    ],
)
def test_a_time_is_in_utc_with_at_most_six_digits_or_a_dash(time, written):
    assert parts(cloudevent=changed(time=time))["time"] == written


def test_who_is_not_known_is_a_dash():
    assert parts(cloudevent=changed(observer=None))["host"] == b"-"


@given(st.text(min_size=1), st.text(min_size=1))
def test_whatever_the_names_the_header_keeps_to_the_grammar(host, app):
    found = parts(replace(STYLE, hostname=host, app_name=app, largest=2**20))
    assert len(found["host"]) == min(len(host), 255)


def test_structured_data_is_there_with_an_enterprise_number_only():
    made = make()
    data = parts(replace(STYLE, enterprise_id=32473))["data"].decode()
    assert data.startswith(f'[cloudevent@32473 id="{made.id}" source="/subscriptions/')
    assert f'subject="{made.key}" correlationid="{made.key}"]' in data
    assert "causationid" not in data


def test_values_of_structured_data_are_escaped():
    style = replace(STYLE, enterprise_id=1)
    data = parts(style, changed(subject=r"a]b\"c\\d"))["data"]
    assert rb'subject="a\]b\"c\\d"' in data


def test_the_text_has_no_byte_order_mark():
    assert parts()["text"] == b"x"


def test_a_message_over_the_limit_is_rejected_and_never_cut():
    room = 8192 - len(STYLE.write(make(), b""))
    assert len(STYLE.write(make(), b"x" * room)) == 8192
    with pytest.raises(Rejected, match="has 8193 bytes, and max_size is 8192; raise it here"):
        STYLE.write(make(), b"x" * (room + 1))


@given(st.binary())
def test_a_frame_tells_where_its_message_ends(message):
    length, _, rest = frame(message, "octet-counting").partition(b" ")
    assert (int(length), rest) == (len(message), message)


def test_a_line_is_one_message_or_none():
    assert frame(b"abc", "newline") == b"abc\n"
    with pytest.raises(Rejected, match="framing: octet-counting"):
        frame(b"a\nb", "newline")
    assert frame(make(description=HOSTILE).body, "newline").count(b"\n") == 1


def test_a_time_that_is_written_can_be_read_back():
    written = parts(cloudevent=changed(time="2026-11-15T18:14:48.000001Z"))["time"].decode()
    assert datetime.fromisoformat(written).microsecond == 1
