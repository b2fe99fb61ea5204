"""Whether a host is this machine, so that what goes there in clear text stays here."""

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
