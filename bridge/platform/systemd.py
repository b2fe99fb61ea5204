"""systemd's protocol for services: readiness, status and watchdog; does nothing without systemd.

Its three environment variables belong to that protocol, not to the configuration.
"""

import os
import socket
from contextlib import suppress


def notify(state: str) -> bool:
    """Send *state*, such as `READY=1`, to systemd; False when systemd is not listening."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in {"/", "@"} or not hasattr(socket, "AF_UNIX"):
        return False
    if address.startswith("@"):
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0)
        sock.sendto(state.encode(), address)
        return True
    return False


def watchdog_interval() -> float | None:
    """Seconds between two `WATCHDOG=1`: half of what systemd allows; None when it does not ask."""
    limit = os.environ.get("WATCHDOG_USEC", "")
    meant = os.environ.get("WATCHDOG_PID") or str(os.getpid())
    if not limit.isdecimal() or int(limit) == 0 or meant != str(os.getpid()):
        return None
    return int(limit) / 2_000_000
