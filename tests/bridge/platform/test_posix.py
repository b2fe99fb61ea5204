"""POSIX: the lock, directories, the boot and signals."""

import asyncio
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bridge import platform
from bridge.platform import posix, windows

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX and its twin, on POSIX")
HOLD = """
import sys
from pathlib import Path
from bridge.platform import lock
with lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock on the state directory."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_process_is_refused_with_the_id_of_the_first(holder, tmp_path):
    with pytest.raises(platform.AlreadyRunning) as caught, platform.lock(tmp_path):
        pass
    assert f"(process {holder.pid})" in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_the_lock_ends_with_its_process_and_the_file_stays(holder, tmp_path):
    holder.kill()
    holder.wait()
    assert (tmp_path / "bridge.lock").exists()
    with platform.lock(tmp_path):
        assert (tmp_path / "bridge.lock").read_text() == f"{os.getpid()}\n"


def test_a_released_lock_can_be_taken_again(tmp_path):
    for _ in range(2):
        with platform.lock(tmp_path):
            inode = (tmp_path / "bridge.lock").stat().st_ino
    assert (tmp_path / "bridge.lock").stat().st_ino == inode


def test_the_lock_creates_the_directory_for_its_owner_only(tmp_path):
    with platform.lock(tmp_path / "a" / "b"):
        assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "a" / "b" / "bridge.lock").stat().st_mode) == 0o600


def test_a_directory_that_cannot_be_written_is_an_os_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"), platform.lock(tmp_path / "file" / "state"):
        pass


LEAVE_A_CHILD = """
import os, subprocess, sys
from pathlib import Path
from bridge.platform import lock
with lock(Path(sys.argv[1])):
    say = "import sys; print('started', flush=True); sys.stdin.read()"
    subprocess.Popen([sys.executable, "-c", say], close_fds=False)
    sys.stdin.read()
"""


def test_children_of_a_killed_bridge_do_not_hold_the_lock(tmp_path):
    command = [sys.executable, "-c", LEAVE_A_CHILD, str(tmp_path)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.kill()
        process.wait()
        with platform.lock(tmp_path):
            assert process.stdin is not None
            process.stdin.close()


def test_the_state_directory_is_the_systems_if_it_can_be_written_else_the_users(
    tmp_path, monkeypatch
):
    (tmp_path / "file").touch()
    system, user = tmp_path / "system", tmp_path / "user"
    monkeypatch.setattr(posix, "_user_state", lambda: [user])
    monkeypatch.setattr(posix, "SYSTEM_STATE", system)
    assert platform.default_state_dir() == system
    assert not user.exists()
    monkeypatch.setattr(posix, "SYSTEM_STATE", tmp_path / "file" / "x")
    assert platform.default_state_dir() == user
    assert platform.state_dirs() == [tmp_path / "file" / "x", user]


def test_the_users_directory_does_not_come_from_the_environment(monkeypatch):
    before = platform.state_dirs()
    for name in ("HOME", "XDG_STATE_HOME", "STATE_DIRECTORY"):
        monkeypatch.setenv(name, "/elsewhere")
    assert platform.state_dirs() == before
    assert before[0] == Path("/var/lib/scheduled-events-bridge")
    assert str(before[1]).endswith("/.local/state/scheduled-events-bridge")


def test_an_unknown_user_has_no_directory(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert platform.state_dirs() == [posix.SYSTEM_STATE]


def test_a_directory_that_exists_keeps_its_mode(tmp_path):
    tmp_path.chmod(0o755)
    platform.private_directory(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("directory", "file", "others"),
    [(0o755, 0o644, True), (0o750, 0o640, True), (0o700, 0o644, False), (0o755, 0o600, False)],
)
def test_a_file_is_open_to_others_when_they_can_reach_and_read_it(
    tmp_path, directory, file, others
):
    path = tmp_path / "journal.db"
    assert not platform.open_to_others(path)
    path.touch()
    path.chmod(file)
    tmp_path.chmod(directory)
    assert platform.open_to_others(path) is others


def test_the_boot_has_an_id_that_stays(tmp_path, monkeypatch):
    assert platform.boot_id() == platform.boot_id()
    monkeypatch.setattr(posix, "BOOT_ID", tmp_path / "boot_id")
    assert platform.boot_id() is None
    (tmp_path / "boot_id").write_text("4f0f...\n")
    assert platform.boot_id() == "4f0f..."


STOPPING = """
import asyncio, signal, sys
from bridge.platform import signals

async def main():
    said = asyncio.Queue()
    with signals(lambda: said.put_nowait("stop"), lambda: said.put_nowait("reload")):
        print("ready", flush=True)
        while True:
            print(await said.get(), flush=True)

asyncio.run(main())
"""


@pytest.fixture
def stopping():
    with subprocess.Popen([sys.executable, "-c", STOPPING], stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_to_stop_and_the_second_ends_the_process(stopping, first, second):
    stopping.send_signal(first)
    assert stopping.stdout.readline() == "stop\n"
    stopping.send_signal(second)
    assert stopping.wait() == -second


def test_each_hangup_asks_to_reload(stopping):
    for _ in range(3):
        stopping.send_signal(signal.SIGHUP)
        assert stopping.stdout.readline() == "reload\n"


@pytest.mark.parametrize("module", [posix, windows])
async def test_handlers_are_restored(module):
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    stop = asyncio.Event()
    with module.signals(stop.set, stop.set):
        os.kill(os.getpid(), signal.SIGINT)
        await stop.wait()
    assert [signal.getsignal(number) for number in numbers] == before


def test_a_private_file_is_for_its_owner_with_any_umask_and_keeps_its_content(tmp_path):
    path = tmp_path / "journal.db"
    old = os.umask(0)
    try:
        platform.private_file(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("kept")
    platform.private_file(path)
    assert path.read_text() == "kept"
    platform.private_file(tmp_path / "nowhere" / "journal.db")


@pytest.fixture
def restored_limit():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_limit_of_open_files_is_raised_as_far_as_the_system_allows(restored_limit):
    _, hard = restored_limit
    low = min(512, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (low, hard))
    assert posix.open_files() == low
    assert posix.raise_open_files(low + 64) == min(low + 64, hard)
    assert posix.raise_open_files(2**40) == min(2**40, hard)


def test_a_limit_of_open_files_that_is_high_enough_stays(restored_limit):
    soft, hard = restored_limit
    assert posix.raise_open_files(8) == soft
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)


def test_core_dumps_are_off_but_can_be_allowed_again():
    before = resource.getrlimit(resource.RLIMIT_CORE)
    try:
        posix.forbid_core_dumps()
        assert resource.getrlimit(resource.RLIMIT_CORE) == (0, before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
