"""One run of a command: starts it, feeds it, reads its output, and always ends it."""

import asyncio
import math
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from bridge.plugins import Unavailable
from sinks.command.groups import GROUPS
from sinks.command.settings import GRACE, CommandSettings

KEPT = 4000
"""Bytes of the output's end that are kept."""
_LINGER = 0.5
"""Seconds to read the rest of the output after the end; a child may keep the pipe open."""
_LOOK = 0.05


@dataclass(frozen=True, slots=True)
class Task:
    """What to run, and what to put on stdin."""

    argv: Sequence[str]
    body: bytes
    env: Mapping[str, str]
    cwd: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The exit code, None when it took too long; a signal is a negative code."""

    code: int | None
    output: bytes


class _Child(asyncio.SubprocessProtocol):
    """What the event loop reports about a process."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.exited: asyncio.Future[None] = loop.create_future()
        self.silent: asyncio.Future[None] = loop.create_future()
        self.output = b""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        del fd
        self.output = (self.output + data)[-KEPT:]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """A program need not read its stdin."""
        del exc
        if fd == 1 and not self.silent.done():
            self.silent.set_result(None)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)


def find_program(settings: CommandSettings, env: Mapping[str, str]) -> str:
    """Where the program is. Raises `Unavailable` with what the operator has to correct."""
    name = settings.argv[0]
    if not Path(settings.cwd).is_dir():
        raise Unavailable(f"cwd: {settings.cwd} is not a directory")
    if found := shutil.which(name, path=env.get("PATH", "")):
        return found
    if not Path(name).is_absolute():
        raise Unavailable(f"argv: program {name} is not on PATH ({env.get('PATH', '')})")
    if not Path(name).exists():
        raise Unavailable(f"argv: {name} does not exist")
    raise Unavailable(f"argv: {name} is not a program that this user may run")


async def run(task: Task, timeout: float) -> Ended:
    """Run the command, or stop it after *timeout* seconds. Raises OSError if it cannot start.

    When canceled, it first stops the command and everything that the command started.
    """
    transport, child = await _started(task)
    try:
        async with asyncio.timeout(timeout):
            _feed(transport, task.body)
            await asyncio.shield(child.exited)
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(child.silent), _LINGER)
    except TimeoutError:
        return Ended(None, child.output)
    else:
        return Ended(transport.get_returncode(), child.output)
    finally:
        await _close(transport, child)


async def _started(task: Task) -> tuple[asyncio.SubprocessTransport, _Child]:
    """Start it so that no cancellation, at whatever moment, leaves a process running."""
    starting = asyncio.ensure_future(_start(task))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):
            await _close(*await starting)
        raise


async def _start(task: Task) -> tuple[asyncio.SubprocessTransport, _Child]:
    return await asyncio.get_running_loop().subprocess_exec(
        _Child,
        *task.argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=dict(task.env),
        cwd=task.cwd,
        **GROUPS.options(),
    )


def _feed(transport: asyncio.SubprocessTransport, body: bytes) -> None:
    _stdin(transport).write(body)
    _stdin(transport).close()


def _stdin(transport: asyncio.SubprocessTransport) -> asyncio.WriteTransport:
    return cast("asyncio.WriteTransport", transport.get_pipe_transport(0))


async def _close(transport: asyncio.SubprocessTransport, child: _Child) -> None:
    try:
        if not child.exited.done():
            await _stop(transport.get_pid(), child)
    finally:
        # Unread output would keep the pipe open; a pipe that was read to its end is closed.
        if _stdin(transport).get_write_buffer_size():
            _stdin(transport).abort()
        transport.close()


async def _stop(leader: int, child: _Child) -> None:
    """Ask all processes to end; kill those that do not within a moment, or when canceled."""
    GROUPS.end(leader, at_once=False)
    try:
        async with asyncio.timeout(GRACE):
            await asyncio.shield(child.exited)
            await _left_by_all(leader)
    except TimeoutError:
        pass
    finally:
        GROUPS.end(leader, at_once=True)
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.shield(child.exited), GRACE)


async def _left_by_all(leader: int) -> None:
    """The system does not report the end of a process that is not our child."""
    for _ in range(math.ceil(GRACE / _LOOK)):
        if not GROUPS.lives(leader):
            return
        await asyncio.sleep(_LOOK)
