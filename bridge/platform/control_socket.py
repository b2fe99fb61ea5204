"""The control socket: how commands on this machine reach the running bridge, on POSIX systems."""

import errno
import hashlib
import os
import socket
import stat
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.platform.errors import AlreadyRunning

if TYPE_CHECKING:
    from aiohttp import BaseConnector
    from aiohttp.web import AppRunner, BaseSite

ControlSite = Callable[["AppRunner", socket.socket, Callable[[], None]], "BaseSite"]
SOCKET = "control.sock"
# The limit is 108 bytes on Linux, elsewhere 104. Bridge and commands must agree on the path, so it
# cannot depend on a variable such as TMPDIR.
LONGEST_PATH = 100
_NOBODY = 2**32 - 1
SHORT_PATHS = Path("/tmp")  # noqa: S108  what we put there is private, and checked


def control_address(state_dir: Path) -> str:
    """The path of the socket; if it is too long for the kernel, a short path derived from it.

    Raises PermissionError when another user owns the short path.
    """
    path = os.path.realpath(state_dir / SOCKET)
    if len(os.fsencode(path)) <= LONGEST_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:24]
    directory = SHORT_PATHS / f"seb-{digest}"
    _refuse_strangers(directory, state_dir)
    return str(directory / SOCKET)


def check_group(name: str) -> None:
    """Raise ValueError when there is no such group."""
    _group_id(name)


def _group_id(name: str) -> int:
    import grp  # noqa: PLC0415  not everywhere

    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise ValueError(f"there is no group {name!r} on this machine") from None


async def serve_control(
    runner: "AppRunner", address: str, group: str | None, make_site: ControlSite
) -> "BaseSite":
    """Serve *runner*'s application at *address*, for the owner and for *group*, if given.

    *make_site* gets the socket, and what to call when it has stopped: that deletes the file. Raises
    OSError when it cannot create the socket, and `AlreadyRunning` when a bridge answers.
    """
    group_id = None if group is None else _group_id(group)
    sock = _bound(Path(address), group_id)
    site = make_site(runner, sock, lambda: _remove(address))
    await site.start()
    return site


def control_connector(address: str) -> "BaseConnector":
    """Connect to the bridge at *address*, whatever host the URL names."""
    from aiohttp import UnixConnector  # noqa: PLC0415  commands that need no bridge start faster

    return UnixConnector(path=address)


def _bound(path: Path, group_id: int | None) -> socket.socket:
    if path.parent.parent == SHORT_PATHS:
        _short_directory(path.parent, group_id)
    _clear(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # Linux gives the file the mode of the descriptor, so it is never open to others.
        os.fchmod(sock.fileno(), 0o600)
        sock.bind(str(path))
        path.chmod(0o600)
        if group_id is not None:
            os.chown(path, -1, group_id)
            path.chmod(0o660)
        sock.listen(128)
        sock.settimeout(0)
    except OSError:
        sock.close()
        raise
    return sock


def _short_directory(path: Path, group_id: int | None) -> None:
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "belongs to another user", str(path))
    if group_id is not None:
        os.chown(path, -1, group_id)
    path.chmod(0o700 if group_id is None else 0o710)


def _refuse_strangers(directory: Path, state_dir: Path) -> None:
    """Trust only root, ourselves and the owner of *state_dir*: anyone may create a directory."""
    trusted = {0, os.geteuid()}
    with suppress(OSError):
        trusted.add(state_dir.stat().st_uid)
    with suppress(FileNotFoundError):
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in trusted:
            raise PermissionError(errno.EPERM, "belongs to another user", str(directory))


def _remove(address: str) -> None:
    Path(address).unlink(missing_ok=True)


def _clear(path: Path) -> None:
    """Delete a socket that a dead process left; refuse to touch anything else."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise FileExistsError(errno.EEXIST, "is in the way: not a socket", str(path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise AlreadyRunning(f"{path} does not answer, but a process uses it") from error
    raise AlreadyRunning(f"a bridge already answers at {path}")


def peer_user(end: socket.socket) -> int | None:
    """The user id at the other end of a control connection, if the system reports it."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    with suppress(OSError):
        _, user, _ = struct.unpack("3I", end.getsockopt(socket.SOL_SOCKET, option, 12))
        # On any other kind of socket, Linux answers with a number that no user has.
        return None if user == _NOBODY else int(user)
    return None
