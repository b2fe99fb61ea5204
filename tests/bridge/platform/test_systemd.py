"""What the bridge sends to systemd, and what systemd asks for."""

import os
import socket
import sys
from pathlib import Path

import pytest

from bridge import platform

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")


@pytest.mark.parametrize("kind", ["file", "abstract"])
def test_systemd_receives_what_is_sent(kind, state_dir, monkeypatch):
    path = str(state_dir / "notify")
    address, variable = (path, path) if kind == "file" else ("\0" + path, "@" + path)
    monkeypatch.setenv("NOTIFY_SOCKET", variable)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(address)
        assert platform.notify("READY=1")
        assert systemd.recv(100) == b"READY=1"
    Path(path).unlink(missing_ok=True)


@pytest.mark.parametrize("address", [None, "", "/nowhere/at/all", "vsock:1:2", "@" + "x" * 500])
def test_without_systemd_nothing_happens(address, monkeypatch):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    if address is not None:
        monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert not platform.notify("READY=1")


@pytest.mark.parametrize(
    ("usec", "pid", "interval"),
    [
        ("30000000", None, 15),
        ("30000000", "ours", 15),
        ("30000000", "1", None),
        ("0", None, None),
        ("soon", None, None),
        (None, None, None),
    ],
)
def test_the_watchdog_is_fed_twice_as_often_as_it_asks(monkeypatch, usec, pid, interval):
    for name, value in (("WATCHDOG_USEC", usec), ("WATCHDOG_PID", pid)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, str(os.getpid()) if value == "ours" else value)
    assert platform.watchdog_interval() == interval
