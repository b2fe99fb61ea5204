"""Whose request a proxy passes on, as far as the configuration trusts the proxy; pure."""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from bridge.config.values import Network

FORWARDED_FOR = "X-Forwarded-For"
_MOST = 32
"""How many addresses are read, from the last one on: each proxy adds one."""


def caller_address(
    peer: str | None, forwarded: Sequence[str], trusted: Iterable[Network]
) -> str | None:
    """The last address in the chain that is not a trusted proxy, for logs, audits and limits.

    Everything before it was written by somebody who is not trusted. It never gives rights.
    """
    if peer is None or not forwarded or not _trusts(peer, trusted := tuple(trusted)):
        return peer
    known = peer
    for named in reversed(",".join(forwarded).split(",")[-_MOST:]):
        found = _address(named.strip())
        if found is None:
            return known
        known = str(found)
        if not _trusts(known, trusted):
            return known
    return known


def _trusts(address: str, trusted: Iterable[Network]) -> bool:
    found = _address(address)
    return found is not None and any(found in network for network in trusted)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """An address, without the port that some proxies add; an IPv4 one in its usual form."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found
