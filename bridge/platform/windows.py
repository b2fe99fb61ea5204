"""Windows, as `posix` and `control_socket`: ProgramData, a lock byte, the registry, a pipe."""

import asyncio
import hashlib
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.platform import windows_rights as rights
from bridge.platform.errors import LOCK_FILE, refusal
from bridge.platform.windows_control import CONTROLS

if TYPE_CHECKING:
    from aiohttp import BaseConnector
    from aiohttp.web import AppRunner, BaseSite

# Windows locks are mandatory: lock a byte that nobody reads, so that others can read the pid.
_LOCK_BYTE = 1024
BOOT_KEY = r"SOFTWARE\scheduled-events-bridge"
_PROFILES = r"SOFTWARE\Microsoft\Windows NT\CurrentVersion\ProfileList"
_INTERFACES = r"SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces"
_MOST_INTERFACES = 100


def program_data() -> Path:
    """The directory of everything that is ours on this machine.

    The registry says where, the same to every account. The variable is only its copy.
    """
    return Path(
        _registered() or os.environ.get("PROGRAMDATA", r"C:\ProgramData"), "scheduled-events-bridge"
    )


def _registered() -> str | None:
    with suppress(ImportError, OSError):
        winreg: Any = import_module("winreg")
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _PROFILES) as key:
            return str(winreg.ExpandEnvironmentStrings(winreg.QueryValueEx(key, "ProgramData")[0]))
    return None


def config_file() -> Path:
    return program_data() / "config.yaml"


def state_dirs() -> list[Path]:
    return [program_data() / "state"]


def default_state_dir() -> Path:
    return state_dirs()[0]


def private_directory(path: Path) -> Path:
    """Create *path* for its owner, the system and administrators; leave an existing one alone."""
    rights.make_directory(path, rights.sddl(rights.entry(rights.user_sid())))
    return path


def private_file(path: Path) -> None:
    """Do nothing: the file inherits its permissions from its directory."""
    del path


def read_owned(path: Path) -> None:
    """Nothing: every user may create files in ProgramData, and modes mean nothing."""
    del path


def runs_as(pid: int, user: int) -> bool:
    """Always False: Windows has no user numbers."""
    del pid, user
    return False


def open_to_others(path: Path) -> bool:
    """Whether all users of this machine have access to *path*."""
    try:
        return rights.open_to_everybody(rights.rights_of(str(path)))
    except OSError:
        return False


@contextmanager
def lock(state_dir: Path) -> Generator[None]:
    msvcrt: Any = import_module("msvcrt")
    path = private_directory(state_dir) / LOCK_FILE
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT), "r+b", buffering=0) as file:
        pid = file.read(20).decode(errors="replace").strip()
        file.seek(_LOCK_BYTE)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            raise refusal(state_dir, pid) from None
        file.seek(0)
        file.write(f"{os.getpid()}\n".encode().ljust(20))
        yield


def boot_id() -> str | None:
    """An id in a volatile key of the registry, which Windows forgets when it shuts down.

    Who may not create that key gets the minute of the boot, as far as the clock knows it.
    """
    with suppress(OSError):
        return _volatile_id()
    return _boot_minute()


def _volatile_id() -> str:
    winreg: Any = import_module("winreg")
    with winreg.CreateKey(winreg.HKEY_LOCAL_MACHINE, BOOT_KEY) as ours:
        key = _volatile_key(winreg, ours)
    with key:
        with suppress(FileNotFoundError):
            return str(winreg.QueryValueEx(key, "Id")[0])
        made = str(uuid.uuid4())
        winreg.SetValueEx(key, "Id", 0, winreg.REG_SZ, made)
        return made


def _volatile_key(winreg: Any, parent: Any) -> Any:
    """Open or create the key `Boot`; `winreg` itself can only create keys that stay."""
    ctypes: Any = import_module("ctypes")
    advapi, handle = ctypes.WinDLL("advapi32"), ctypes.c_void_p()
    code = advapi.RegCreateKeyExW(
        ctypes.c_void_p(int(parent)), "Boot", 0, None, winreg.REG_OPTION_VOLATILE,
        winreg.KEY_READ | winreg.KEY_WRITE, None, ctypes.byref(handle), None,
    )  # fmt: skip
    if code:
        raise ctypes.WinError(code)
    try:
        return winreg.OpenKey(handle.value, "", 0, winreg.KEY_READ | winreg.KEY_WRITE)
    finally:
        advapi.RegCloseKey(handle)


def _boot_minute() -> str | None:
    """Not the second, because the clock may be corrected a little."""
    ctypes: Any = import_module("ctypes")
    try:
        ticks = ctypes.windll.kernel32.GetTickCount64
    except AttributeError:
        return None
    ticks.restype = ctypes.c_uint64
    return f"boot-{round((time.time() - ticks() / 1000) / 60)}"


def dhcp_options() -> list[tuple[str, bytes]]:
    """The DHCP options of each network interface, as Windows keeps them in the registry."""
    winreg: Any = import_module("winreg")
    found: list[tuple[str, bytes]] = []
    with suppress(OSError), winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _INTERFACES) as interfaces:
        for number in range(_MOST_INTERFACES):
            name = winreg.EnumKey(interfaces, number)  # the last one raises OSError
            with suppress(FileNotFoundError), winreg.OpenKey(interfaces, name) as interface:
                value, kind = winreg.QueryValueEx(interface, "DhcpInterfaceOptions")
                if kind == winreg.REG_BINARY and value:
                    found.append((name, value))
    return found


def notify(state: str) -> bool:
    """Tell the service manager *state*, such as `READY=1`, if this process is a service."""
    return bool(CONTROLS.report(state))


@contextmanager
def signals(stop: Callable[[], object], reload: Callable[[], object]) -> Generator[None]:
    """Call *stop* on the first Ctrl-C or Ctrl-Break, or when the service manager asks.

    Only the service manager can ask for *reload*. A service does not run in the main thread, and
    gets no signals.
    """
    soon = asyncio.get_running_loop().call_soon_threadsafe
    with ExitStack() as stack:
        stack.enter_context(CONTROLS.attached(partial(soon, stop), partial(soon, reload)))
        if threading.current_thread() is threading.main_thread():
            stack.enter_context(_console_signals(partial(soon, stop)))
        yield


@contextmanager
def _console_signals(stop: Callable[[], object]) -> Generator[None]:
    numbers = [signal.SIGINT, getattr(signal, "SIGBREAK", signal.SIGTERM)]
    before = {number: signal.getsignal(number) for number in numbers}

    def stopping(*_: object) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
        stop()

    for number in numbers:
        signal.signal(number, stopping)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def control_address(state_dir: Path) -> str:
    digest = hashlib.sha256(str(state_dir.absolute()).casefold().encode()).hexdigest()[:24]
    return rf"\\.\pipe\scheduled-events-bridge-{digest}"


def check_group(name: str) -> None:
    """Raise ValueError when there is no such group."""
    rights.group_sid(name)


async def serve_control(
    runner: "AppRunner", address: str, group: str | None, make_site: object
) -> "BaseSite":
    """As on POSIX, but a pipe has no socket and no file, so *make_site* is not needed."""
    from bridge.platform.windows_pipe import serve_pipe  # noqa: PLC0415  only the bridge serves

    del make_site
    return await serve_pipe(runner, address, None if group is None else rights.group_sid(group))


def control_connector(address: str) -> "BaseConnector":
    from aiohttp import NamedPipeConnector  # noqa: PLC0415  commands start faster without it

    return NamedPipeConnector(path=address)


def peer_user(end: object) -> None:
    """A pipe is open to its owner alone; Windows has no user numbers."""
    del end


def raise_open_files(wanted: int) -> int:
    """Return *wanted*: Windows has no such limit."""
    return wanted


def open_files() -> int:
    """As many as anyone may want: Windows has no such limit."""
    return 2**16


def forbid_core_dumps() -> None:
    """Do nothing: on Windows the administrator decides for each program."""
