"""Forked bridges, for tests that start many: a tenth of the work of a new Python."""

import asyncio
import atexit
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FORKS = Path(__file__).with_name("bridge_forks.py")


class QuickProcess:
    """A forked bridge with the interface of `asyncio.subprocess.Process`."""

    def __init__(
        self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._ending = asyncio.create_task(self._end(reader, writer))

    async def _end(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        self.returncode = int(await reader.readline())
        writer.close()
        return self.returncode

    async def wait(self) -> int:
        return await asyncio.shield(self._ending)

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


async def fork_bridge(words: Sequence[str], faults: dict[str, Any], log: Path) -> QuickProcess:
    """Run `seb WORDS` with *faults* built in; its output goes to *log*."""
    log.write_bytes(b"")
    reader, writer = await asyncio.open_unix_connection(fork_server())
    wanted = {"words": words, "faults": faults, "log": str(log), "environment": {**os.environ}}
    writer.write(json.dumps(wanted).encode() + b"\n")
    return QuickProcess(int(await reader.readline()), reader, writer)


@functools.cache
def fork_server() -> str:
    """The socket of the server that forks. All tests of this process share it; it ends with them."""
    folder = tempfile.mkdtemp(prefix="bridge-forks-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/socket")
        listener.listen(64)
        number = listener.fileno()
        command = [sys.executable, "-P", str(FORKS), str(number)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[number])
    atexit.register(process.communicate)
    return f"{folder}/socket"
