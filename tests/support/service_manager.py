"""A stand-in for systemd: it runs a unit's commands and speaks the notify protocol, and no more."""

import asyncio
import os
import shlex
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from support.until import until

SEB = Path(sys.executable).with_name("seb")


def settings(unit: Path) -> dict[str, list[str]]:
    """Every key of the unit with its values in order; comments and sections are left out."""
    found: dict[str, list[str]] = {}
    for line in unit.read_text(encoding="utf-8").splitlines():
        name, given, value = line.partition("=")
        if given and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


@dataclass
class ServiceManager:
    """One service, as its unit describes it."""

    unit: dict[str, list[str]]
    folder: Path
    environment: dict[str, str]
    watchdog: float
    """Seconds in place of WatchdogSec, which is long for a test."""
    heard: list[str] = field(default_factory=list)
    _socket: socket.socket | None = None
    _process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self.folder / "notify"))
        self._socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._socket, self._hear)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._socket is not None
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def _hear(self) -> None:
        assert self._socket is not None
        self.heard.append(self._socket.recv(4096).decode())

    @property
    def log(self) -> Path:
        return self.folder / "service.log"

    async def _spawn(self, command: str, **more: str) -> asyncio.subprocess.Process:
        words = [word.replace("/usr/bin/seb", str(SEB)) for word in shlex.split(command)]
        with self.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *words,
                env={"PATH": os.environ["PATH"], **self.environment, **more},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    async def start(self) -> int:
        """Run ExecStartPre; if it succeeds, start the service and wait until it is ready."""
        for command in self.unit["ExecStartPre"]:
            code = await (await self._spawn(command)).wait()
            if code:
                return code
        before = self.count("READY=1")
        [command] = self.unit["ExecStart"]
        self._process = await self._spawn(
            command,
            NOTIFY_SOCKET=str(self.folder / "notify"),
            WATCHDOG_USEC=str(int(self.watchdog * 1_000_000)),
        )
        await self.until(lambda: self.count("READY=1") > before, "READY=1")
        return 0

    async def until(self, condition: object, what: str) -> None:
        await until(condition, what, self.log.read_text)  # type: ignore[arg-type]  # as until takes it

    def count(self, state: str) -> int:
        return self.heard.count(state)

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "the service was not started"
        return self._process

    async def reload(self) -> None:
        """ExecReload, to its end."""
        [command] = self.unit["ExecReload"]
        child = await self._spawn(command.replace("$MAINPID", str(self.process.pid)))
        assert await child.wait() == 0

    async def stop(self) -> int:
        """Send SIGTERM to the main process alone, as KillMode=mixed does; its exit code."""
        assert self.unit["KillMode"] == ["mixed"]
        self.process.send_signal(signal.SIGTERM)
        return await self.process.wait()

    async def abort_when_silent(self) -> None:
        """Abort the service once it has not fed its watchdog for as long as it may take."""
        heard = -1
        while heard != self.count("WATCHDOG=1"):
            heard = self.count("WATCHDOG=1")
            await asyncio.sleep(self.watchdog)
        self.process.send_signal(signal.SIGABRT)
        self.process.send_signal(signal.SIGCONT)


@asynccontextmanager
async def service(
    unit: Path, folder: Path, *, watchdog: float, **environment: str
) -> AsyncGenerator[ServiceManager]:
    async with ServiceManager(settings(unit), folder, environment, watchdog) as made:
        yield made


def joined(values: Iterable[str]) -> set[str]:
    """The words of a key that may be written several times."""
    return {word for value in values for word in value.split()}
