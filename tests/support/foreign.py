"""Programs that use other people's libraries, in Go, Java and JavaScript: started, and read line by line."""

import asyncio
import functools
import json
import os
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from support.lacking import lacking
from support.scripts import SCRIPTS, Unobtainable, run_script

Json = dict[str, Any]
Language = Literal["Go", "Java", "JavaScript"]
PATIENCE = 90.0
"""The longest wait for a line, on a busy machine with a JVM that starts."""
SOURCES = Path(__file__).parents[1] / "interop"


@functools.cache
def _built() -> Path:
    return Path(run_script("interop-programs"))


def _command(language: Language) -> tuple[list[str], dict[str, str]]:
    try:
        built = _built()
    except Unobtainable as error:
        lacking(f"the programs of tests/interop are not to be had: {error}")
    if language == "Go":
        return [str(built / "go" / "interop")], {}
    if language == "Java":
        return ["java", f"@{built / 'java' / 'args'}", "Interop"], {}
    libraries = (built / "javascript").read_text().strip()
    program = str(SOURCES / "javascript" / "interop.mjs")
    return ["node", program], {"NODE_PATH": f"{libraries}/node_modules"}


@dataclass
class Foreign:
    """A running program, and what it has said so far."""

    process: asyncio.subprocess.Process
    lines: list[Json] = field(default_factory=list)

    async def next(self) -> Json:
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = await self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            said = (await self.process.stderr.read()).decode()
            raise AssertionError(f"it ended with {await self.process.wait()}:\n{said[-2000:]}")
        self.lines.append(json.loads(line))
        return self.lines[-1]

    async def until(self, condition: Callable[[Json], object]) -> Json:
        while not condition(said := await self.next()):
            pass
        return said

    async def ever(self, condition: Callable[[Json], object]) -> Json:
        """What it has said before, or says next: partitions are read in any order."""
        found = next(filter(condition, self.lines), None)
        return found if found is not None else await self.until(condition)


@asynccontextmanager
async def running(language: Language, *words: str) -> AsyncGenerator[Foreign]:
    """The program with these words, until the end of the block."""
    command, added = await asyncio.to_thread(_command, language)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, *words, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe,
        env={**os.environ, **added}, limit=2**22,
    )  # fmt: skip
    try:
        yield Foreign(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def ask(language: Language, *words: str, stdin: Any = None) -> list[Json]:
    """Everything that the program says, once it has ended well."""
    command, added = await asyncio.to_thread(_command, language)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, *words, stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, **added}
    )
    try:
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate(json.dumps(stdin).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()[-2000:]
    return [json.loads(line) for line in out.splitlines()]


def go_version(module: str) -> str:
    """As our go.mod has it; a commit is shortened."""
    text = (SOURCES / "go" / "go.mod").read_text()
    found = re.search(rf"^\s*{re.escape(module)} v(\S+)", text, re.MULTILINE)
    assert found is not None, module
    return re.sub(r"-\d{14}-([0-9a-f]{7})[0-9a-f]*$", r" (\1)", found[1])


def java_version(artifact: str) -> str:
    text = (SOURCES / "java" / "pom.xml").read_text()
    found = re.search(rf"<artifactId>{artifact}</artifactId><version>([^<]+)", text)
    assert found is not None, artifact
    return found[1]


def npm_version(package: str) -> str:
    named = json.loads((SOURCES / "javascript" / "package.json").read_text())
    version: str = named["dependencies"][package]
    return version


def kafka_version() -> str:
    found = re.search(r"^version=(\S+)", (SCRIPTS / "kafka-libs").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]
