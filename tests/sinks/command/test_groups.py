"""Programs that start in their own process group, and end with it."""

import os
import subprocess
import sys
import time
from typing import Any

import pytest

from sinks.command.groups import Posix, Windows

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX, and Windows on POSIX")

POSIX, WINDOWS = Posix(), Windows()


def test_the_environment_is_made_not_inherited(monkeypatch):
    monkeypatch.setenv("PATH", "/ours")
    monkeypatch.setenv("HOME", "/ours")
    monkeypatch.setenv("SECRET", "ours")
    assert set(POSIX.environment()) == {"PATH", "LANG", "HOME"}
    assert "/ours" not in POSIX.environment().values()


def test_a_user_without_an_entry_has_the_root_as_home(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert POSIX.environment()["HOME"] == "/"


@pytest.mark.parametrize("at_once", [False, True])
def test_a_group_ends_with_all_that_is_in_it(at_once):
    script = "sleep 60 & echo $!; wait"
    group: dict[str, Any] = POSIX.options()
    with subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, **group) as leader:
        assert leader.stdout is not None
        leader.stdout.readline()
        assert POSIX.lives(leader.pid)
        POSIX.end(leader.pid, at_once=at_once)
        assert leader.wait(10) == (-9 if at_once else -15)
        assert leader.stdout.read() == b""
    for _ in range(1000):  # the killed children may not be gone yet
        if not POSIX.lives(leader.pid):
            break
        time.sleep(0.01)
    assert not POSIX.lives(leader.pid)
    POSIX.end(leader.pid, at_once=True)


def test_windows_keeps_its_root_and_asks_for_the_whole_tree(monkeypatch):
    monkeypatch.setenv("SYSTEMROOT", r"D:\Win")
    told = WINDOWS.environment()
    assert told["SystemRoot"] == r"D:\Win"
    assert told["PATH"].startswith(r"D:\Win\System32;")
    asked: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda argv, **_: asked.append(argv))
    WINDOWS.end(4711, at_once=True)
    assert asked == [["taskkill", "/T", "/F", "/PID", "4711"]]
    assert WINDOWS.options() == {"creationflags": 0}
    assert not WINDOWS.lives(4711)
