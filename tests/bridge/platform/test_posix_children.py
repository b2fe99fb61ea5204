"""How a program is started in a group of its own and ended with it: POSIX, and the Windows twin."""

import os
import subprocess
import sys

import pytest

from bridge.platform import posix, windows

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX and its twin, on POSIX")


def test_the_environment_is_made_not_inherited(monkeypatch):
    monkeypatch.setenv("PATH", "/ours")
    monkeypatch.setenv("HOME", "/ours")
    monkeypatch.setenv("SECRET", "ours")
    assert set(posix.plain_environment()) == {"PATH", "LANG", "HOME"}
    assert "/ours" not in posix.plain_environment().values()


def test_a_user_without_an_entry_is_at_home_at_the_root(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert posix.plain_environment()["HOME"] == "/"


@pytest.mark.parametrize("at_once", [False, True])
def test_a_group_ends_with_all_that_is_in_it(at_once):
    script = "sleep 60 & echo $!; wait"
    with subprocess.Popen(
        ["/bin/sh", "-c", script], stdout=subprocess.PIPE, **posix.own_group()
    ) as leader:
        leader.stdout.readline()
        assert posix.group_lives(leader.pid)
        posix.end_group(leader.pid, at_once=at_once)
        assert leader.wait(10) == (-9 if at_once else -15)
        assert leader.stdout.read() == b""
    assert not posix.group_lives(leader.pid)
    posix.end_group(leader.pid, at_once=True)


def test_windows_keeps_its_root_and_asks_for_the_whole_tree(monkeypatch):
    monkeypatch.setenv("SYSTEMROOT", r"D:\Win")
    told = windows.plain_environment()
    assert told["SystemRoot"] == r"D:\Win"
    assert told["PATH"].startswith(r"D:\Win\System32;")
    asked = []
    monkeypatch.setattr(subprocess, "run", lambda argv, **_: asked.append(argv))
    windows.end_group(4711, at_once=True)
    assert asked == [["taskkill", "/T", "/F", "/PID", "4711"]]
    assert windows.own_group() == {"creationflags": 0}
    assert not windows.group_lives(4711)
