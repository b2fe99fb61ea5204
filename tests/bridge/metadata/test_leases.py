import struct
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.metadata.leases import (
    DHCLIENT,
    NETWORKD,
    dhclient_address,
    networkd_address,
    registry_address,
    routes_to_host,
)

DATA = Path(__file__).parent / "data"
NOW = datetime(2026, 11, 15, 18, 29, 47, tzinfo=UTC)
HOST = IPv4Address("168.63.129.16")


def read(name: str) -> str:
    return (DATA / name).read_text(encoding="utf-8")


def block(*lines: str) -> str:
    return "\n".join(["lease {", *(f"  {line};" for line in lines), "}\n"])


@pytest.mark.parametrize(
    "name",
    [
        "debian/var/lib/dhcp/dhclient.eth0.leases",
        "redhat/var/lib/dhclient/dhclient-eth0.lease",
        "networkmanager/var/lib/NetworkManager/dhclient-0a1b2c3d-eth0.lease",
        "openbsd/var/db/dhclient.leases.hvn0",
    ],
)
def test_the_host_is_found_in_the_leases_of_each_system(name):
    assert dhclient_address(read(name), NOW) == HOST


def test_every_file_of_the_data_is_found_by_a_pattern():
    patterns = [NETWORKD, *DHCLIENT]
    found = {path for pattern in patterns for path in DATA.glob(f"*/{pattern}")}
    assert found == {path for path in DATA.rglob("*") if path.is_file() and path.name != "route"}


def test_an_expiry_in_seconds_since_the_epoch_is_understood():
    text = read("redhat/var/lib/dhclient/dhclient-1b2c--eth1.leases")
    assert dhclient_address(text, NOW) == IPv4Address("169.254.169.254")
    assert dhclient_address(text, datetime(2155, 1, 1, tzinfo=UTC)) is None


def test_an_expired_lease_is_skipped():
    assert dhclient_address(read("expired/var/lib/dhcp/dhclient.leases"), NOW) is None


def test_a_lease_ends_in_the_second_in_which_it_expires():
    text = block("option unknown-245 a8:3f:81:10", "expire 0 2026/11/15 18:29:47")
    assert dhclient_address(text, NOW) is None
    assert dhclient_address(text, NOW.replace(second=46)) == HOST


def test_the_last_lease_in_force_wins():
    older = block("option unknown-245 a9:fe:1:1", "expire never")
    newer = block("option unknown-245 a8:3f:81:10", "expire never")
    over = block("option unknown-245 a9:fe:2:2", "expire 1 2020/01/01 00:00:00")
    without = block("expire never")
    assert dhclient_address(older + newer + over + without, NOW) == HOST


@pytest.mark.parametrize(
    "lines",
    [
        ["option unknown-245 a8:3f:81:10"],
        ["option unknown-245 a8:3f:81:10", "expire soon"],
        ["option unknown-245 a8:3f:81:10", "expire 2 2026/99/99 08:18:55"],
        ["option unknown-245 a8:3f:81:10", "expire epoch 99999999999999999999"],
        ["option unknown-245 a8:3f:81", "expire never"],
        ["option unknown-245 zz:3f:81:10", "expire never"],
        ['option unknown-245 "text"', "expire never"],
        ["option unknown-244 a8:3f:81:10", "expire never"],
    ],
    ids=" and ".join,
)
def test_a_lease_without_a_plain_address_and_expiry_is_skipped(lines):
    assert dhclient_address(block(*lines), NOW) is None


def test_a_lease_that_is_still_being_written_is_skipped():
    text = block("option unknown-245 a8:3f:81:10", "expire never").replace("}", "")
    assert dhclient_address(text, NOW) is None


def test_the_host_is_found_in_a_lease_of_networkd():
    assert networkd_address(read("networkd/run/systemd/netif/leases/2")) == HOST
    assert networkd_address(read("networkd/run/systemd/netif/leases/3")) is None


@pytest.mark.parametrize("value", ["", "a83f81", "a83f811000", "zzzzzzzz", "168.63.129.16"])
def test_a_networkd_line_that_is_not_an_address_is_skipped(value):
    assert networkd_address(f"OPTION_245={value}\n") is None


def test_a_route_to_the_host_is_seen_in_the_table_of_the_kernel():
    assert routes_to_host(read("routed/proc/net/route"))
    assert not routes_to_host(read("unrouted/proc/net/route"))
    assert not routes_to_host("")


LINES = st.sampled_from(
    ["lease {", "}", "expire never;", "option unknown-245 a8:3f:81:10;", "expire 9 9/9/9 9:9:9;"]
)


@given(st.lists(LINES | st.text(max_size=30)).map("\n".join))
def test_no_text_raises(text):
    for address in (dhclient_address(text, NOW), networkd_address(text)):
        assert address is None or isinstance(address, IPv4Address)
    assert routes_to_host(text) in (True, False)


def option(code: int, data: bytes, *, vendor: int = 0, expires: int = 2_000_000_000) -> bytes:
    head = struct.pack("<5I", code, 0, len(data), vendor, expires)
    return head + data + bytes(-len(data) % 4)


HOST_BYTES = HOST.packed


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (option(12, b"GIGABYTE-PC") + option(245, HOST_BYTES) + option(252, b""), True),
        (option(245, HOST_BYTES, expires=1_000_000_000), False),
        (option(245, HOST_BYTES, vendor=1), False),
        (option(245, HOST_BYTES + b"1234"), False),
        (option(245, HOST_BYTES)[:-1], False),
        (option(3, HOST_BYTES), False),
        (b"\xff" * 64, False),
        (b"", False),
    ],
)
def test_option_245_is_read_from_the_registry_of_windows(data, found):
    assert registry_address(data, NOW) == (HOST if found else None)
