import asyncio
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import types
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from bridge import platform
from bridge.platform import control_socket as control
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
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


# The lock


def test_a_second_process_is_refused_and_told_who_was_first(holder, tmp_path):
    with pytest.raises(platform.AlreadyRunning) as caught, platform.lock(tmp_path):
        pass
    assert f"(process {holder.pid})" in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_the_lock_dies_with_its_process_and_the_file_stays(holder, tmp_path):
    holder.kill()
    holder.wait()
    assert (tmp_path / "bridge.lock").exists()
    with platform.lock(tmp_path):
        assert (tmp_path / "bridge.lock").read_text() == f"{os.getpid()}\n"


def test_the_lock_can_be_taken_again_when_it_was_let_go(tmp_path):
    for _ in range(2):
        with platform.lock(tmp_path):
            inode = (tmp_path / "bridge.lock").stat().st_ino
    assert (tmp_path / "bridge.lock").stat().st_ino == inode


def test_the_lock_makes_the_directory_for_its_owner_alone(tmp_path):
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


def test_what_a_killed_bridge_had_started_does_not_hold_the_lock(tmp_path):
    command = [sys.executable, "-c", LEAVE_A_CHILD, str(tmp_path)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout.readline() == "started\n"
        process.kill()
        process.wait()
        with platform.lock(tmp_path):
            process.stdin.close()


# Places and the boot


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


def test_a_user_whom_nobody_knows_has_no_directory(monkeypatch):
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
def test_a_file_is_open_to_others_when_they_may_get_there_and_read_it(
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


# Signals

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
async def test_handlers_are_put_back(module):
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    stop = asyncio.Event()
    with module.signals(stop.set, stop.set):
        os.kill(os.getpid(), signal.SIGINT)
        await stop.wait()
    assert [signal.getsignal(number) for number in numbers] == before


# The control socket


@pytest.fixture
async def runner():
    async def hello(request: web.Request) -> web.Response:
        return web.Response(text="hello")

    app = web.Application()
    app.router.add_get("/", hello)
    runner = web.AppRunner(app)
    await runner.setup()
    yield runner
    await runner.cleanup()


async def ask(address: str) -> str:
    connector = platform.control_connector(address)
    async with aiohttp.ClientSession(connector=connector) as session:
        return await (await session.get("http://bridge/")).text()


def mode(path: str | Path) -> int:
    return stat.S_IMODE(Path(path).stat().st_mode)


@pytest.fixture
def short_paths(tmp_path_factory, monkeypatch):
    """A stand-in for /tmp, as far up as pytest allows, so that paths in it stay short."""
    path = Path(f"/tmp/seb-test-{os.getpid()}")
    path.mkdir(mode=0o1777)
    monkeypatch.setattr(control, "SHORT_PATHS", path)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def state_dir(short_paths):
    path = short_paths / "state"
    path.mkdir(mode=0o755)
    return path


async def test_commands_reach_the_bridge_and_only_its_owner_may(runner, state_dir):
    address = platform.control_address(state_dir)
    assert address == str(state_dir / "control.sock")
    old = os.umask(0)
    try:
        await platform.serve_control(runner, address, None)
    finally:
        os.umask(old)
    assert await ask(address) == "hello"
    assert mode(address) == 0o600
    await runner.cleanup()
    assert not Path(address).exists()


async def test_a_group_may_use_it_too(runner, state_dir):
    address = platform.control_address(state_dir)
    group = subprocess.run(["id", "-gn"], capture_output=True, text=True, check=True).stdout.strip()
    await platform.serve_control(runner, address, group)
    assert mode(address) == 0o660
    assert Path(address).stat().st_gid == os.getgid()


async def test_a_group_that_there_is_not_is_refused(runner, state_dir):
    with pytest.raises(ValueError, match="there is no group 'no-such-group' on this machine"):
        await platform.serve_control(runner, str(state_dir / "control.sock"), "no-such-group")
    assert list(state_dir.iterdir()) == []


async def test_what_a_dead_process_left_is_replaced(runner, state_dir):
    address = platform.control_address(state_dir)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(address)
    with pytest.raises(aiohttp.ClientConnectorError):
        await ask(address)
    await platform.serve_control(runner, address, None)
    assert await ask(address) == "hello"


async def test_a_bridge_that_answers_is_not_replaced(runner, state_dir):
    address = platform.control_address(state_dir)
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(address)
        alive.listen()
        with pytest.raises(platform.AlreadyRunning, match="a bridge already answers at"):
            await platform.serve_control(runner, address, None)
    Path(address).unlink()


async def test_a_file_that_is_no_socket_is_not_touched(runner, state_dir):
    address = platform.control_address(state_dir)
    Path(address).write_text("precious")
    with pytest.raises(FileExistsError, match="not a socket"):
        await platform.serve_control(runner, address, None)
    assert Path(address).read_text() == "precious"
    Path(address).unlink()


@pytest.fixture
def long_dir(tmp_path):
    path = tmp_path / ("x" * 60) / ("y" * 60)
    path.mkdir(parents=True)
    return path


async def test_a_path_too_long_for_the_kernel_has_a_short_and_private_one(
    runner, long_dir, short_paths
):
    address = platform.control_address(long_dir)
    assert Path(address).parent.parent == short_paths
    assert len(address) <= 100
    assert platform.control_address(long_dir) == address
    assert platform.control_address(long_dir.parent / ("z" * 60)) != address
    await platform.serve_control(runner, address, None)
    assert await ask(address) == "hello"
    assert (mode(Path(address).parent), mode(address)) == (0o700, 0o600)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
async def test_a_stranger_cannot_take_the_short_path_first(runner, long_dir, short_paths):
    address = platform.control_address(long_dir)
    trap = Path(address).parent
    trap.mkdir()
    os.chown(trap, 12345, -1)
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        platform.control_address(long_dir)
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        await platform.serve_control(runner, address, None)


def test_a_link_at_the_short_path_is_a_trap(long_dir, short_paths, tmp_path):
    trap = Path(platform.control_address(long_dir)).parent
    trap.symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="belongs to somebody else"):
        platform.control_address(long_dir)


# systemd


@pytest.mark.parametrize("kind", ["file", "abstract"])
def test_systemd_hears_what_it_is_told(kind, state_dir, monkeypatch):
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


# The twin


def test_both_systems_have_the_same_names():
    shared = set(platform.__all__) - {"AlreadyRunning", "notify", "watchdog_interval"}
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
    msvcrt = types.ModuleType("msvcrt")
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
