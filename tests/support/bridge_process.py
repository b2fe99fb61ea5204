"""The bridge as a real process under a simulated metadata service, seen from outside only."""

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from support.quick_process import QuickProcess, fork_bridge
from support.until import until

from bridge.core.model import Document
from bridge.simulator import Scenario, Simulator
from bridge.simulator.world.world import World

COMMAND = (str(Path(sys.executable).with_name("seb")),)
FAULTY = (sys.executable, "-P", str(Path(__file__).with_name("faulty_bridge.py")))
PATIENCE = 45.0
"""The longest wait on a busy machine; nothing here should take a tenth of it."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A document that the metadata service showed, and which of our processes asked for it."""

    process: int
    document: Document


@dataclass(slots=True)
class Stage:
    """A metadata service that notes what it showed to whom, and one bridge at a time under it."""

    folder: Path
    simulator: Simulator
    config: dict[str, Any]
    quick: bool = False
    """Whether its processes are forks, for tests that start many."""
    shown: list[Shown] = field(default_factory=list)
    number: int = 0
    _process: asyncio.subprocess.Process | QuickProcess | None = None

    def __post_init__(self) -> None:
        self._watch()
        self.configure()

    def _watch(self) -> None:
        world: Any = self.simulator.world
        answer = world.document

        def document() -> Document:
            self.shown.append(Shown(self.number, answer()))
            return self.shown[-1].document

        world.document = document

    @property
    def world(self) -> World:
        return self.simulator.world

    @property
    def process(self) -> asyncio.subprocess.Process | QuickProcess:
        """The current process, or the last one."""
        assert self._process is not None, "no process was started"
        return self._process

    @property
    def state_dir(self) -> Path:
        return Path(self.config["state_dir"])

    @property
    def journal(self) -> Path:
        return self.state_dir / "journal.db"

    @property
    def files(self) -> list[Path]:
        sinks = self.config["sinks"].values()
        paths = [Path(sink["path"]) for sink in sinks if "path" in sink]
        return [path for path in paths if path.exists()]

    def configure(self, **changes: Any) -> None:
        """Write the configuration; JSON is YAML."""
        self.config = {**self.config, **changes}
        self._file.write_text(json.dumps(self.config, indent=1))

    @property
    def _file(self) -> Path:
        return self.folder / "config.yaml"

    async def start(
        self, *more: str, faults: dict[str, Any] | None = None, files: int | None = None
    ) -> None:
        """Start the command itself, or one with *faults* built in, or one that may open few files."""
        self.number += 1
        words = ["run", "-c", str(self._file), *more]
        if self.quick:
            self._process = await fork_bridge(words, faults or {}, self._log(self.number))
            return
        program = COMMAND if faults is None else (*FAULTY, json.dumps(faults))
        if files is not None:
            program = ("sh", "-c", f'ulimit -n {files}; exec "$0" "$@"', *program)
        with self._log(self.number).open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *program, *words, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log
            )

    async def once(self, **faults: Any) -> int:
        """`seb run --once`, to its end; the exit code."""
        await self.start("--once", faults=faults or None)
        return await self.ended()

    async def beside(self, command: str = "run", *more: str) -> tuple[int, str]:
        """The exit code and all output of another command while the bridge runs."""
        return await self._command((command, *more), stderr=asyncio.subprocess.STDOUT)

    async def seb(self, *words: str) -> tuple[int, str]:
        """The exit code and stdout of another command that talks to this bridge."""
        return await self._command(words, stderr=asyncio.subprocess.DEVNULL)

    async def _command(self, words: Sequence[str], stderr: int) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *COMMAND, *words, "-c", str(self._file),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=stderr,
        )  # fmt: skip
        try:
            async with asyncio.timeout(PATIENCE):
                said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return await process.wait(), said.decode()

    async def ended(self) -> int:
        """The exit code, once there is one; a signal is negative."""
        async with asyncio.timeout(PATIENCE):
            return await self.process.wait()

    async def kill(self) -> None:
        """Kill it with SIGKILL, as the kernel would."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def stop(self) -> int:
        """Stop it as an operator would; return the exit code. A killed process may be gone already."""
        with contextlib.suppress(ProcessLookupError):
            self.signal(signal.SIGTERM)
        return await self.ended()

    @property
    def dead(self) -> bool:
        return self.process.returncode is not None

    async def polled(self, times: int = 2) -> None:
        """Wait until the running process has read *times* documents more, or has died.

        When it asks again, it has committed what it read before.
        """
        before = len(self.shown)
        await until(lambda: self.dead or len(self.shown) >= before + times, "polls")

    def _log(self, number: int) -> Path:
        return self.folder / f"bridge-{number}.log"

    def output(self) -> str:
        """The output of the current process."""
        return self._log(self.number).read_text("utf-8", "replace")

    def said(self, event: str) -> list[dict[str, Any]]:
        """The log records of that name, from the current process."""
        records = [json.loads(line) for line in self.output().splitlines() if line[:1] == "{"]
        return [record for record in records if record["event"] == event]

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait for something that the running process does."""
        await until(lambda: condition() or self.dead, what, self.output)
        assert condition(), f"{what}: the process is dead\n{self.output()}"

    async def until_said(self, event: str) -> None:
        await self.until(lambda: self.said(event), f"{event} in the log")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()


@contextlib.asynccontextmanager
async def stage(
    folder: Path,
    scenario: Scenario | str | None = None,
    *,
    speed: float = 1.0,
    quick: bool = False,
    **config: Any,
) -> AsyncGenerator[Stage]:
    """A quiet world, unless there is a scenario, and a configuration with two file sinks."""
    folder.mkdir(parents=True, exist_ok=True)
    async with Simulator(scenario, speed=speed) as simulator:
        usual: dict[str, Any] = {
            "source": {"endpoint": simulator.endpoint, "poll_interval": "200ms"},
            "state_dir": str(folder / "state"),
            "sinks": {name: file_sink(folder, name) for name in ("left", "right")},
            "http": {"listen": None},
        }
        source = {**usual["source"], **config.pop("source", {})}
        config = {**usual, **config, "source": source}
        async with Stage(folder, simulator, config, quick) as made:
            yield made


def announce(at: Stage, name: str, **more: Any) -> str:
    """A reboot that waits for its approval; its EventId."""
    usual = {"type": "Reboot", "notice": "15m", "started_for": "1s"}
    return at.world.create(name=name, **{**usual, **more}).event.key


def posts(at: Stage) -> list[dict[str, Any]]:
    """The approvals that the metadata service got."""
    return [record for record in at.simulator.truth if record["what"] == "approval"]


def file_sink(folder: Path, name: str, **more: Any) -> dict[str, Any]:
    return {"type": "file", "path": str(folder / f"{name}.jsonl"), **more}
