"""The Windows code, as far as other systems can test it."""

import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from bridge import platform
from bridge.platform import windows

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX and its twin, on POSIX")


def test_both_systems_have_the_same_names():
    everywhere = {"AlreadyRunning", "Usage", "notify", "usage", "watchdog_interval"}
    shared = set(platform.__all__) - everywhere
    assert {name for name in shared if not hasattr(windows, name)} == set()


def test_the_package_can_be_imported_where_posix_modules_are_missing():
    program = (
        "import sys\nfor name in ('fcntl', 'pwd', 'grp', 'resource'): sys.modules[name] = None\n"
        "import bridge.platform, bridge.platform.windows, bridge.config"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_windows_keeps_things_under_program_data(monkeypatch):
    monkeypatch.setenv("PROGRAMDATA", "/pd")
    assert windows.config_file() == Path("/pd/scheduled-events-bridge/config.yaml")
    assert windows.default_state_dir() == Path("/pd/scheduled-events-bridge/state")


def test_a_windows_pipe_belongs_to_one_state_directory(tmp_path):
    one, other = windows.control_address(tmp_path / "A"), windows.control_address(tmp_path / "b")
    assert one.startswith("\\\\.\\pipe\\scheduled-events-bridge-")
    assert one != other
    assert one == windows.control_address(tmp_path / "a")


def test_windows_refuses_a_control_group():
    with pytest.raises(ValueError, match="on Windows the control pipe has no group"):
        windows.check_group("ops")


def test_windows_refuses_a_second_process_too(tmp_path, monkeypatch):
    """With a lock that behaves as Windows documents its own: one byte, no waiting."""
    fcntl = pytest.importorskip("fcntl")
    msvcrt: Any = types.ModuleType("msvcrt")
    msvcrt.LK_NBLCK = fcntl.LOCK_EX | fcntl.LOCK_NB
    msvcrt.locking = lambda descriptor, kind, _: fcntl.flock(descriptor, kind)
    monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
    with (
        windows.lock(tmp_path),
        pytest.raises(platform.AlreadyRunning, match=rf"\(process {os.getpid()}\)"),
        windows.lock(tmp_path),
    ):
        pass
    with windows.lock(tmp_path):
        pass
