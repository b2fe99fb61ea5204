"""Read Azure's host address (option 245) from DHCP leases, and from the kernel's routes; pure."""

import re
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import IPv4Address

NETWORKD = "run/systemd/netif/leases/*"
DHCLIENT = (
    "var/lib/dhcp/dhclient*.leases",  # Debian, Ubuntu
    "var/lib/dhclient/dhclient-*.lease",  # Red Hat
    "var/lib/dhclient/dhclient-*.leases",
    "var/lib/NetworkManager/dhclient-*.lease",
    "var/db/dhclient.leases.*",  # OpenBSD
)
ROUTES = "proc/net/route"

_NETWORKD_LINE = re.compile(r"^OPTION_245=([0-9A-Fa-f]{8})\s*$", re.MULTILINE)
_OPTION = re.compile(
    r"option\s+(?:unknown|option)-245\s+((?:[0-9A-Fa-f]{1,2}:){3}[0-9A-Fa-f]{1,2})"
)
_EXPIRE = re.compile(r"expire\s+(?:\d\s+)?(never|epoch\s+\d+|\d+/\d+/\d+\s+\d+:\d+:\d+)")
_HEAD = struct.Struct("<5I")
_HOST_IN_ROUTES = "10813FA8"  # 168.63.129.16, little-endian as the kernel prints it


def networkd_address(text: str) -> IPv4Address | None:
    """Option 245 of a systemd-networkd lease; the file is deleted when the lease ends."""
    found = _NETWORKD_LINE.findall(text)
    return IPv4Address(bytes.fromhex(found[-1])) if found else None


def dhclient_address(text: str, now: datetime) -> IPv4Address | None:
    """Option 245 of the last lease in a dhclient file that has it and has not expired."""
    address = None
    for block in _blocks(text):
        option = _OPTION.search(block)
        if option is not None and _valid(block, now):
            address = IPv4Address(bytes(int(part, 16) for part in option[1].split(":")))
    return address


def registry_address(data: bytes, now: datetime) -> IPv4Address | None:
    """Option 245 of an interface in the registry of Windows, unless it has expired.

    The value is a list of options. Each has five numbers of four bytes, little-endian: its code,
    its class, its length, whether it is a vendor's, and when it expires in seconds since 1970. Its
    data follows, filled up to a multiple of four bytes.
    """
    address, start = None, 0
    while start + _HEAD.size <= len(data):
        code, _, length, vendor, expires = _HEAD.unpack_from(data, start)
        start += _HEAD.size
        value = data[start : start + length]
        if (code, length, vendor) == (245, 4, 0) and len(value) == 4 and expires > now.timestamp():
            address = IPv4Address(value)
        start += (length + 3) // 4 * 4
    return address


def routes_to_host(text: str) -> bool:
    """Whether the kernel has a host route to 168.63.129.16, which Azure's DHCP sets."""
    rows = (line.split() for line in text.splitlines())
    return any(len(row) > 1 and row[1].upper() == _HOST_IN_ROUTES for row in rows)


def _blocks(text: str) -> Iterator[str]:
    """The contents of each `lease { … }`; one without an end is still being written: skip it."""
    block: list[str] | None = None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("lease") and line.endswith("{"):
            block = []
        elif line == "}" and block is not None:
            yield "\n".join(block)
            block = None
        elif block is not None:
            block.append(line)


def _valid(block: str, now: datetime) -> bool:
    expire = _EXPIRE.search(block)
    if expire is None:
        return False
    if expire[1] == "never":
        return True
    try:
        return _moment(expire[1]) > now
    except (ValueError, OverflowError, OSError):
        return False


def _moment(text: str) -> datetime:
    if text.startswith("epoch"):
        return datetime.fromtimestamp(int(text.split()[1]), UTC)
    return datetime.strptime(" ".join(text.split()), "%Y/%m/%d %H:%M:%S").replace(tzinfo=UTC)
