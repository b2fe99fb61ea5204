"""Processes to measure: started, read through /proc, and stopped by their own id."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 60.0
"""How long anything may take that normally takes a moment, in seconds."""
_STEP = 0.1
_QUIET = 0.004
"""A process that used less CPU time than this in one step has finished its work, in seconds."""


@dataclass(frozen=True, slots=True)
class Process:
    """A running program; `log` has what it wrote to standard error."""

    pid: int
    log: Path
    _process: asyncio.subprocess.Process

    @property
    def cpu(self) -> float:
        """Seconds of CPU time of all its threads, also of those that have ended."""
        return time.clock_gettime(~self.pid << 3 | 2)  # the kernel's id for another process's clock

    @property
    def memory(self) -> float:
        """Resident memory, in MiB."""
        return _field(f"/proc/{self.pid}/status", "VmRSS") / 1024

    @property
    def wakeups(self) -> int:
        """How often any of its threads went to sleep, which is how often one woke."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/status")
        return sum(_field(str(task), "voluntary_ctxt_switches") for task in tasks)

    def check(self) -> None:
        """Raises if the program has ended, with the end of its log."""
        if self._process.returncode is not None:
            said = self.log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"A measured program ended with {self._process.returncode}:\n{said}")

    async def idle(self) -> float:
        """Wait until it has finished its work, and return its CPU time."""
        before = self.cpu
        for _ in range(int(PATIENCE / _STEP)):
            await asyncio.sleep(_STEP)
            self.check()
            now = self.cpu
            if now - before < _QUIET:
                return now
            before = now
        raise TimeoutError(f"A measured program did not become idle; its log is {self.log}")

    async def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


def _field(file: str, name: str) -> int:
    return int(Path(file).read_text().split(f"\n{name}:")[1].split()[0])


def environment() -> dict[str, str]:
    """With bytecode, as installed programs have it; the warm-up round compiles it."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


@contextlib.asynccontextmanager
async def process(
    command: Sequence[str], log: Path, output: Path | None = None
) -> AsyncGenerator[Process]:
    """Run a program until the context ends; *output* gets its standard output."""
    with log.open("ab") as errors, Path(output or os.devnull).open("ab") as written:
        started = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=written,
            stderr=errors,
            env=environment(),
        )
    running = Process(started.pid, log, started)
    try:
        yield running
    finally:
        await running.stop()
