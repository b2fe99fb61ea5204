"""The syslog sink without a receiver: its keys, its messages by RFC 5424, its words for errors."""

import re
import ssl
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.cloudevents import HOSTILE, make

from bridge.plugins import CloudEvent, Place, Rejected, severity
from sinks.syslog import SyslogSettings, settings
from sinks.syslog.binding import Style, frame
from sinks.syslog.errors import why

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


def configured(address: str = "udp://siem.example", **keys) -> SyslogSettings:
    return SyslogSettings.model_validate({"type": "syslog", "address": address} | keys)


def refused(**keys) -> str:
    with pytest.raises(ValidationError) as told:
        configured(**keys)
    return str(told.value)


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


# Keys


@pytest.mark.parametrize(
    ("given_", "meant", "largest"),
    [
        ("udp://siem.example", "udp://siem.example:514", 2048),
        ("tcp://siem.example", "tcp://siem.example:601", 8192),
        ("tls://siem.example", "tls://siem.example:6514", 8192),
        (" tcp://10.0.0.1:5140 ", "tcp://10.0.0.1:5140", 8192),
        ("tls://[::1]", "tls://[::1]:6514", 8192),
        ("udp://[fe80::1%eth0]:1", "udp://[fe80::1%eth0]:1", 2048),
    ],
)
def test_an_address_has_a_port_and_a_limit_by_its_scheme(given_, meant, largest):
    made = configured(given_)
    assert (made.address, made.largest) == (meant, largest)


WRONG = """
siem.example http://a tcp:// tcp://a:0 tcp://a:65536 tcp://a:b tcp://a/b tcp://u@a tcp://a?b
tcp://::1 unix:///dev/log
"""


@pytest.mark.parametrize("wrong", ["", "tcp://a b", *WRONG.split()])
def test_what_is_no_address_is_refused(wrong):
    assert "is not a receiver's address; write udp://HOST:PORT" in refused(address=wrong)


def test_a_password_in_an_address_is_not_repeated():
    with pytest.raises(ValidationError) as told:
        configured("tls://seb:t0p-s3cret@siem.example:6514")
    [problem] = told.value.errors()
    assert "t0p-s3cret" not in problem["msg"]
    assert "what holds a user name is not a receiver's address" in problem["msg"]


@pytest.mark.parametrize(
    ("keys", "why_not"),
    [
        ({"address": "tcp://a", "tls": True}, "tls is of no use with tcp://"),
        ({"address": "udp://a", "tls": {}}, "tls is of no use with udp://"),
        ({"address": "tls://a", "tls": False}, "tls: false contradicts tls://"),
        ({"address": "udp://a", "framing": "newline"}, "framing is of no use with udp://"),
        ({"address": "udp://a", "keep_connected": False}, "keep_connected is of no use with udp"),
        ({"address": "udp://a", "max_size": "64KiB"}, "max_size is from 480B to 65507B"),
        ({"address": "tcp://a", "max_size": "2MiB"}, "max_size is from 480B to 1048576B"),
        ({"address": "tcp://a", "max_size": "100B"}, "max_size is from 480B"),
        ({"facility": "local8"}, "facility"),
        ({"app_name": "two words"}, "app_name"),
        ({"app_name": "x" * 49}, "app_name"),
        ({"hostname": "{nobody}"}, "{nobody} is not known"),
        ({"enterprise_id": 0}, "enterprise_id"),
    ],
)
def test_keys_that_do_not_fit_are_refused_in_words(keys, why_not):
    assert why_not in refused(**keys)


def test_every_facility_that_can_be_named_has_its_number():
    names = SyslogSettings.model_json_schema()["properties"]["facility"]["enum"]
    assert tuple(names) == settings.FACILITIES
    numbers = {name: number for number, name in enumerate(settings.FACILITIES)}
    assert (numbers["daemon"], numbers["authpriv"], numbers["local0"]) == (3, 10, 16)
    assert numbers["local7"] == 23


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"address": "udp://a"}, "where nothing tells whether they arrive"),
        ({"address": "tcp://a"}, "to tcp://a:601 without TLS"),
        (
            {"address": "tls://a", "format": "cef"},
            "as cef in syslog messages (RFC 5424) to tls://a",
        ),
        ({"address": "tls://a", "tls": {"insecure": True}}, "over TLS that checks nothing"),
        ({"address": "tls://a", "tls": {"certificate": "c"}}, "with a client certificate"),
    ],
)
def test_it_describes_itself(keys, words):
    assert words in configured(**keys).describe()


def test_tls_without_more_is_verified():
    tls = configured("tls://a").security
    assert tls is not None
    assert tls.context().verify_mode is ssl.CERT_REQUIRED
    assert configured("tcp://a").security is None


# Messages


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


def test_a_byte_order_mark_is_there_if_asked_for():
    assert parts()["text"] == b"x"
    assert parts(replace(STYLE, bom=True))["text"] == b"\xef\xbb\xbfx"


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


def test_the_hostname_may_be_made_of_names():
    place = Place({"vm_name": "web 1", "location": "westeurope"})
    assert place.fill(configured(hostname="{vm_name}.{location}").hostname or "") == (
        "web_1.westeurope"
    )


def test_a_time_that_is_written_can_be_read_back():
    written = parts(cloudevent=changed(time="2026-11-15T18:14:48.000001Z"))["time"].decode()
    assert datetime.fromisoformat(written).microsecond == 1


# Errors


@pytest.mark.parametrize("error", [ConnectionResetError(), BrokenPipeError(), ssl.SSLEOFError()])
def test_one_who_hangs_up_is_said_to(error):
    assert why(error) == "it hung up"


def test_over_tls_to_hang_up_may_be_about_certificates():
    assert why(ConnectionResetError(), tls=True).startswith(
        "it hung up, as it also does on a client"
    )
    assert why(ConnectionRefusedError(), tls=True) == "nothing listens there"
