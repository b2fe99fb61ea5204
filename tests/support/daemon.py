"""A server from Debian in its own process: started, stopped and killed on the same ports."""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from support import lifeline
from support.ports import free_ports

HOST = "127.0.0.1"
START = 20.0


class DaemonFailed(Exception):
    """It did not start, or is not what it should be; its log says why."""


@dataclass(kw_only=True)
class Daemon:
    """Lives in `folder`, where it writes its log and the number of its process."""

    folder: Path = field(kw_only=False)
    ports: dict[str, int] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    _held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    @abstractmethod
    def listeners(self) -> Sequence[str]:
        """The names of its ports."""

    @abstractmethod
    def start(self) -> None:
        """Configure it, launch it, and wait until it is there."""

    @property
    def log(self) -> Path:
        return self.folder / f"{type(self).__name__.lower()}.log"

    @property
    def pid(self) -> Path:
        return self.folder / "pid"

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._held.enter_context(lifeline.held(self._lock, fcntl.LOCK_SH))
        names = self.listeners
        self.ports = dict(zip(names, free_ports(len(names)), strict=True))
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._held.close()

    def launch(self, *command: str, **environment: str) -> None:
        self.pid.unlink(missing_ok=True)
        self.process = lifeline.start(
            self._lock, self.log, *command, env={**os.environ, **environment}
        )

    def stop(self) -> None:
        """Stop it in order: it may disconnect and save its data."""
        assert self.process is not None
        self.signal(signal.SIGTERM)
        self.process.wait(START)

    def kill(self) -> None:
        """Kill it, as a power cut would. Does nothing if it is dead."""
        if self.process is not None:
            lifeline.kill(self.process)
            self._until(lambda: not self.alive)

    def signal(self, number: signal.Signals) -> None:
        os.kill(int(self.pid.read_text()), number)

    @property
    def alive(self) -> bool:
        """Whether it runs. It is not our child; a zombie is not alive, because its connections are closed.

        They close once all its threads have ended: the first may end before the others.
        """
        with contextlib.suppress(OSError, ValueError):
            process = Path(f"/proc/{int(self.pid.read_text())}")
            status = (process / "stat").read_text().rpartition(")")[2].split()[0]
            return status != "Z" or len(list((process / "task").iterdir())) > 1
        return False

    def until(self, condition: Callable[[], bool]) -> None:
        """Return once the condition holds; raise `DaemonFailed` if it ends first, or takes too long."""
        self._until(lambda: not self.runs or condition())
        if not self.runs:
            raise DaemonFailed(f"It ended:\n{self.tail()}")

    def until_listening(self, ports: Sequence[int]) -> None:
        self.until(lambda: self.alive and all(map(_listens, ports)))

    def _until(self, condition: Callable[[], bool]) -> None:
        give_up = time.monotonic() + START
        while not condition():
            if time.monotonic() > give_up:
                raise DaemonFailed(f"It took longer than {START:.0f} s:\n{self.tail()}")
            time.sleep(0.005)

    def tail(self, lines: int = 2000) -> str:
        return lifeline.tail(self.log, lines)

    @property
    def _lock(self) -> Path:
        return self.folder / "users.lock"


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1):
        return True
    return False
