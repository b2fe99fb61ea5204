"""Windows, as `posix` and `control_socket`: ProgramData, a lock byte, a named pipe."""

import asyncio
import hashlib
import os
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.platform.errors import LOCK_FILE, refusal

if TYPE_CHECKING:
    from aiohttp import BaseConnector
    from aiohttp.web import AppRunner, BaseSite

# Windows locks are mandatory: lock a byte that nobody reads, so that others can read the pid.
_LOCK_BYTE = 1024


def _program_data() -> Path:
    return Path(os.environ.get("PROGRAMDATA", r"C:\ProgramData"), "scheduled-events-bridge")


def config_file() -> Path:
    return _program_data() / "config.yaml"


def state_dirs() -> list[Path]:
    return [_program_data() / "state"]


def default_state_dir() -> Path:
    return state_dirs()[0]


def private_directory(path: Path) -> Path:
    """Create *path*; its permissions are inherited from the directory above."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
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
    """Always False: modes mean nothing on Windows."""
    del path
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
    """The minute of the boot; not the second, because the clock may be corrected a little."""
    ctypes: Any = import_module("ctypes")
    try:
        ticks = ctypes.windll.kernel32.GetTickCount64
    except AttributeError:
        return None
    ticks.restype = ctypes.c_uint64
    return f"boot-{round((time.time() - ticks() / 1000) / 60)}"


@contextmanager
def signals(stop: Callable[[], object], reload: Callable[[], object]) -> Generator[None]:
    """Call *stop* on the first Ctrl-C or Ctrl-Break; Windows has no signal for *reload*."""
    del reload
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGINT, getattr(signal, "SIGBREAK", signal.SIGTERM)]
    before = {number: signal.getsignal(number) for number in numbers}

    def stopping(*_: object) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
        loop.call_soon_threadsafe(stop)

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
    raise ValueError(f"{name!r} cannot be used: on Windows the control pipe has no group")


async def serve_control(
    runner: "AppRunner", address: str, group: str | None, make_site: object
) -> "BaseSite":
    """Windows gives a new pipe to its owner, administrators and the system, and has no socket."""
    del make_site
    from aiohttp import web  # noqa: PLC0415  commands start faster without it

    if group is not None:
        check_group(group)
    site = web.NamedPipeSite(runner, address)
    await site.start()
    return site


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
