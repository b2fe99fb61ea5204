"""Programs that start in their own process group, and end with it."""

import os
import subprocess
import sys
from typing import Any

import pytest

from bridge.platform import posix

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX only")


def test_the_environment_is_made_not_inherited(monkeypatch):
    monkeypatch.setenv("PATH", "/ours")
    monkeypatch.setenv("HOME", "/ours")
    monkeypatch.setenv("SECRET", "ours")
    assert set(posix.plain_environment()) == {"PATH", "LANG", "HOME"}
    assert "/ours" not in posix.plain_environment().values()


def test_a_user_without_an_entry_has_the_root_as_home(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert posix.plain_environment()["HOME"] == "/"


@pytest.mark.parametrize("at_once", [False, True])
def test_a_group_ends_with_all_that_is_in_it(at_once):
    script = "sleep 60 & echo $!; wait"
    group: dict[str, Any] = posix.own_group()
    with subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE, **group) as leader:
        assert leader.stdout is not None
        leader.stdout.readline()
        assert posix.group_lives(leader.pid)
        posix.end_group(leader.pid, at_once=at_once)
        assert leader.wait(10) == (-9 if at_once else -15)
        assert leader.stdout.read() == b""
    assert not posix.group_lives(leader.pid)
    posix.end_group(leader.pid, at_once=True)
