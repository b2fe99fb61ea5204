"""The control pipe on Windows: for its owner, the system, administrators and one group."""

import errno
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bridge.platform.errors import AlreadyRunning
from bridge.platform.windows_rights import entry, sddl, security_attributes, user_sid

if TYPE_CHECKING:
    from aiohttp.web import AppRunner, BaseSite

_TAKEN = {5, 231}  # access denied, all instances are busy: the first instance is somebody else's
_NO_REMOTE_CLIENTS = 0x8
_READ_WRITE = "0x12019f"


def pipe_rights(user: str, group: str | None) -> str:
    """SDDL for the pipe. Windows lets everyone read a pipe that was created without one."""
    more = [entry(user, kind="")] if group is None else [entry(user, kind=""), _members(group)]
    return sddl(*more, kind="")


def _members(group: str) -> str:
    return entry(group, _READ_WRITE, kind="")


async def serve_pipe(runner: "AppRunner", address: str, group: str | None) -> "BaseSite":
    """Serve *runner* at *address*; *group* is a SID. Raises `AlreadyRunning` if it is taken."""
    from aiohttp import web  # noqa: PLC0415  commands start faster without it

    site = web.NamedPipeSite(runner, address)
    with _rights(pipe_rights(user_sid(), group)):
        try:
            await site.start()
        except OSError as error:
            if getattr(error, "winerror", None) in _TAKEN or error.errno == errno.EACCES:
                raise AlreadyRunning(f"another process already answers at {address}") from error
            raise
    return site


@contextmanager
def _rights(text: str) -> Generator[None]:
    """Let asyncio create its next pipe with these rights; it has no argument for them.

    All later instances of a pipe have the rights of its first one.
    """
    events: Any = import_module("asyncio.windows_events")
    usual = events.PipeServer
    events.PipeServer = _server(usual, text)
    try:
        yield
    finally:
        events.PipeServer = usual


def _server(usual: Any, text: str) -> type:
    class PipeServer(usual):  # type: ignore[misc]  # imported late
        """As asyncio's, with rights, and for this machine only."""

        def _server_pipe_handle(self, first: bool) -> Any:  # noqa: FBT001  asyncio's signature
            if self.closed():
                return None
            winapi: Any = import_module("_winapi")
            utils: Any = import_module("asyncio.windows_utils")
            access = winapi.PIPE_ACCESS_DUPLEX | winapi.FILE_FLAG_OVERLAPPED
            access |= winapi.FILE_FLAG_FIRST_PIPE_INSTANCE if first else 0
            mode = winapi.PIPE_TYPE_MESSAGE | winapi.PIPE_READMODE_MESSAGE | winapi.PIPE_WAIT
            size = utils.BUFSIZE
            with security_attributes(text) as attributes:
                handle = winapi.CreateNamedPipe(
                    self._address, access, mode | _NO_REMOTE_CLIENTS,
                    winapi.PIPE_UNLIMITED_INSTANCES, size, size,
                    winapi.NMPWAIT_WAIT_FOREVER, attributes,
                )  # fmt: skip
            pipe = utils.PipeHandle(handle)
            self._free_instances.add(pipe)
            return pipe

    return PipeServer
