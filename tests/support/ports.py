"""Ports on loopback for servers that must be found at the same place after a restart."""

import contextlib
import random
import socket


def free_ports(count: int) -> list[int]:
    """A port below the system's automatic range, so that a restarted server can use it again."""
    found: set[int] = set()
    for _ in range(1000):
        port = random.randrange(20_000, 32_000)
        if port not in found and _is_free(port):
            found.add(port)
        if len(found) == count:
            return list(found)
    raise OSError(f"no {count} free ports between 20000 and 32000")


def _is_free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False
