"""Run a command for as long as a process holds a lock on a file: `python lifeline.py LOCK COMMAND…`.

The kernel drops the lock of a process that ends, however it ends, so that nothing is left running.
The description of the command in the lock's file is erased with it.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def held(lock: Path, how: int) -> Iterator[None]:
    """Hold the lock, to keep the command running."""
    with lock.open("a") as file:
        fcntl.flock(file, how)
        yield


def start(lock: Path, log: Path, *command: str, **options: Any) -> subprocess.Popen[bytes]:
    """Run it in its own process group, for as long as the lock is held."""
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, "-S", __file__, str(lock), *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            **options,
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill its whole group, as a power cut would. Does nothing if it is dead."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def tail(log: Path, lines: int) -> str:
    """The end of its output, and where to find the rest."""
    found = log.read_text(errors="replace").splitlines()
    return "\n".join([*found[-lines:], str(log)])


def follow(command: tuple[str, ...], lock: str) -> None:
    code = subprocess.Popen(command).wait()
    os.truncate(lock, 0)
    os._exit(abs(code))


def main(lock: str, *command: str) -> None:
    threading.Thread(target=follow, args=(command, lock), daemon=True).start()
    with Path(lock).open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
