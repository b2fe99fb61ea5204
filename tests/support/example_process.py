"""The programs in `examples/`, run as a user would: in a process, configured by the environment."""

import asyncio
import contextlib
import os
import runpy
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from support.until import until

EXAMPLES = Path(__file__).parents[2] / "examples"


def loaded(name: str, **environment: str) -> dict[str, Any]:
    """The names in a program that is loaded but not run."""
    with mock.patch.dict(os.environ, environment):
        return runpy.run_path(str(EXAMPLES / name))


def plain(**environment: str) -> dict[str, str]:
    """An environment with only our PATH: no proxy, no token."""
    return {"PATH": os.environ["PATH"], **environment}


async def ran(*command: str | Path, **environment: str) -> tuple[int, str]:
    """The exit code and output of a program that ends."""
    async with started(*command, **environment) as process:
        async with asyncio.timeout(30):
            await process.reading
            code = await process.process.wait()
        return code, process.said


@dataclass
class Example:
    """A running program, and its output so far."""

    process: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list)
    reading: asyncio.Task[None] = field(init=False)

    def __post_init__(self) -> None:
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self.lines.append(line.decode().rstrip("\n"))

    @property
    def said(self) -> str:
        return "\n".join(self.lines)

    async def until_said(self, text: str) -> None:
        await until(lambda: text in self.said, repr(text), lambda: self.said)


@contextlib.asynccontextmanager
async def started(*command: str | Path, **environment: str) -> AsyncGenerator[Example]:
    """Run a program; kill it on exit."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=plain(**environment),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    example = Example(process)
    try:
        yield example
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await example.reading


def consumer(kind: str, **environment: str) -> contextlib.AbstractAsyncContextManager[Example]:
    program = EXAMPLES / f"{kind}-consumer" / "consumer.py"
    return started(sys.executable, program, **environment)
