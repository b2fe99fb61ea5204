from ipaddress import ip_network

import pytest

from bridge.web.access.proxies import caller_address

TRUSTED = [ip_network(one) for one in ("127.0.0.1", "10.0.0.0/8", "::1")]


@pytest.mark.parametrize(
    ("peer", "forwarded", "caller"),
    [
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["192.0.2.7"], "192.0.2.7"),
        ("127.0.0.1", ["192.0.2.66, 192.0.2.7, 10.1.1.1"], "192.0.2.7"),
        ("127.0.0.1", ["192.0.2.66", "192.0.2.7,10.1.1.1"], "192.0.2.7"),
        ("127.0.0.1", ["192.0.2.7:5555"], "192.0.2.7"),
        ("::1", ["[2001:db8::7]:443"], "2001:db8::7"),
        ("::1", ["2001:db8::7"], "2001:db8::7"),
        ("::ffff:127.0.0.1", ["192.0.2.7"], "192.0.2.7"),
        ("127.0.0.1", ["10.1.1.1"], "10.1.1.1"),
        ("127.0.0.1", ["192.0.2.7, unknown"], "127.0.0.1"),
        ("127.0.0.1", ["192.0.2.7, <script>, 10.1.1.1"], "10.1.1.1"),
        ("127.0.0.1", [""], "127.0.0.1"),
        ("192.0.2.9", ["192.0.2.7"], "192.0.2.9"),
        (None, ["192.0.2.7"], None),
    ],
)
def test_only_what_trusted_proxies_added_is_believed(peer, forwarded, caller):
    assert caller_address(peer, forwarded, TRUSTED) == caller


def test_a_long_chain_is_read_from_its_end():
    chain = ["192.0.2.66, " * 100_000 + "192.0.2.7"]
    assert caller_address("127.0.0.1", chain, TRUSTED) == "192.0.2.7"


def test_by_default_no_header_is_believed():
    assert caller_address("127.0.0.1", ["192.0.2.7"], []) == "127.0.0.1"
