"""The keys of the syslog sink."""

import ssl
from functools import partial

import pytest
from pydantic import ValidationError
from support.sink_settings import complaint
from support.syslog_sending import configured

from bridge.plugins import Place
from sinks.syslog import SyslogSettings, settings

refused = partial(complaint, configured)


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
def test_what_is_not_an_address_is_refused(wrong):
    assert "is not a receiver's address; write udp://HOST:PORT" in refused(address=wrong)


def test_a_password_in_an_address_is_not_repeated():
    with pytest.raises(ValidationError) as told:
        configured("tls://seb:t0p-s3cret@siem.example:6514")
    [problem] = told.value.errors()
    assert "t0p-s3cret" not in problem["msg"]
    assert "a URL with a user name is not a receiver's address" in problem["msg"]


@pytest.mark.parametrize(
    ("keys", "why_not"),
    [
        ({"address": "tcp://a", "tls": True}, "tls has no effect with tcp://"),
        ({"address": "udp://a", "tls": {}}, "tls has no effect with udp://"),
        ({"address": "tls://a", "tls": False}, "tls: false contradicts tls://"),
        ({"address": "udp://a", "framing": "newline"}, "framing has no effect with udp://"),
        ({"address": "udp://a", "keep_connected": False}, "keep_connected has no effect with udp"),
        ({"address": "udp://a", "max_size": "64KiB"}, "max_size must be from 480B to 65507B"),
        ({"address": "tcp://a", "max_size": "2MiB"}, "max_size must be from 480B to 1048576B"),
        ({"address": "tcp://a", "max_size": "100B"}, "max_size must be from 480B"),
        ({"facility": "local8"}, "facility"),
        ({"app_name": "two words"}, "app_name"),
        ({"app_name": "x" * 49}, "app_name"),
        ({"hostname": "{nobody}"}, "{nobody} is unknown"),
        ({"enterprise_id": 0}, "enterprise_id"),
    ],
)
def test_keys_that_contradict_each_other_are_refused_with_a_reason(keys, why_not):
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
        ({"address": "udp://a"}, "which does not confirm that they arrive"),
        ({"address": "tcp://a"}, "to tcp://a:601 without TLS"),
        (
            {"address": "tls://a", "format": "cef"},
            "as cef in syslog messages (RFC 5424) to tls://a",
        ),
        ({"address": "tls://a", "tls": {"insecure": True}}, "over TLS without verification"),
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


def test_the_hostname_may_be_made_of_names():
    place = Place({"vm_name": "web 1", "location": "westeurope"})
    assert place.fill(configured(hostname="{vm_name}.{location}").hostname or "") == (
        "web_1.westeurope"
    )


def test_only_a_connection_that_stays_open_counts_as_one():
    assert configured("tcp://siem.example").connects
    assert configured("tls://siem.example").connects
    assert not configured("tcp://siem.example", keep_connected=False).connects
    assert not configured("udp://siem.example").connects
