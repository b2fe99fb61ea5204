"""Windows: what other systems can test of it, and the rest under Wine."""

import asyncio
import os
import subprocess
import sys
import time
import uuid
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from bridge import platform
from bridge.platform import windows
from bridge.platform.windows_control import CONTROLS

elsewhere = pytest.mark.skipif(sys.platform == "win32", reason="how it looks from POSIX")
on_windows = pytest.mark.skipif(sys.platform != "win32", reason="`make test-windows` runs it")


@elsewhere
def test_both_systems_have_the_same_names():
    everywhere = {"AlreadyRunning", "ServiceError", "watchdog_interval"}
    shared = set(platform.__all__) - everywhere
    assert {name for name in shared if not hasattr(windows, name)} == set()


@elsewhere
def test_the_package_can_be_imported_where_posix_modules_are_missing():
    program = (
        "import sys\nfor name in ('fcntl', 'pwd', 'grp', 'resource'): sys.modules[name] = None\n"
        "import bridge.platform, bridge.platform.windows, bridge.config"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@elsewhere
def test_windows_keeps_things_under_program_data(monkeypatch):
    monkeypatch.setenv("PROGRAMDATA", "/pd")
    assert windows.config_file() == Path("/pd/scheduled-events-bridge/config.yaml")
    assert windows.default_state_dir() == Path("/pd/scheduled-events-bridge/state")


def test_a_windows_pipe_belongs_to_one_state_directory(tmp_path):
    one, other = windows.control_address(tmp_path / "A"), windows.control_address(tmp_path / "b")
    assert one.startswith("\\\\.\\pipe\\scheduled-events-bridge-")
    assert one != other
    assert one == windows.control_address(tmp_path / "a")


@on_windows
def test_a_group_of_this_machine_may_be_named():
    windows.check_group("Users")
    with pytest.raises(ValueError, match="there is no group 'nobody here'"):
        windows.check_group("nobody here")


@on_windows
def test_a_second_process_is_refused_with_the_id_of_the_first(tmp_path):
    with windows.lock(tmp_path):
        program = "import sys; from pathlib import Path; from bridge.platform import lock\n"
        program += "with lock(Path(sys.argv[1])): print('both')"
        words = [sys.executable, "-c", program, str(tmp_path)]
        second = subprocess.run(words, check=False, capture_output=True, text=True)
    assert f"(process {os.getpid()})" in second.stderr
    with windows.lock(tmp_path):
        pass


@on_windows
def test_the_boot_has_one_id_whatever_the_clock_says(monkeypatch):
    before = windows.boot_id()
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert windows.boot_id() == before
    assert uuid.UUID(str(before))


@on_windows
def test_the_options_of_an_interface_are_in_the_registry():
    winreg: Any = import_module("winreg")
    path = rf"{windows._INTERFACES}\{{{uuid.uuid4()}}}"
    with winreg.CreateKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
        winreg.SetValueEx(key, "DhcpInterfaceOptions", 0, winreg.REG_BINARY, b"here")
    try:
        assert (path.rpartition("\\")[2], b"here") in windows.dhcp_options()
    finally:
        winreg.DeleteKey(winreg.HKEY_LOCAL_MACHINE, path)


@on_windows
async def test_what_the_service_manager_asks_reaches_the_loop_from_its_thread():
    stop, again = asyncio.Event(), asyncio.Event()
    with windows.signals(stop.set, again.set):
        await asyncio.to_thread(CONTROLS.reload)
        await asyncio.wait_for(again.wait(), 30)
        assert not stop.is_set()
