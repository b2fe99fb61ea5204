"""One bridge under a soak: a real process, its configuration, its journal, and what it uses."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from soak.ledger import Row, Sample
from soak.settings import TOKEN
from support.bridge_process import COMMAND, FAULTY

Json = dict[str, Any]
KERNEL = Path(__file__).with_name("kernel.c")
_CONTROL = struct.Struct("3q")


def build_kernel(folder: Path) -> Path | None:
    """The library that changes a process's clock and disk; None where nothing compiles it."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        return None
    library = folder / "kernel.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(KERNEL), "-ldl"]
    done = subprocess.run(command, check=False, capture_output=True)
    return library if done.returncode == 0 else None


@dataclass
class Bridge:
    """The bridge of one VM; `number` counts its processes and `generation` its journals."""

    vm: str
    folder: Path
    config: Json
    port: int
    kernel: Path | None
    number: int = 0
    generation: int = 0
    process: asyncio.subprocess.Process | None = None
    session: aiohttp.ClientSession | None = None
    _control: list[int] = field(default_factory=lambda: [0, 0, 0])

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.configure()
        self.disturb()

    # --- its process -------------------------------------------------------------------------

    @property
    def file(self) -> Path:
        return self.folder / "config.yaml"

    @property
    def journal(self) -> Path:
        return self.folder / "state" / "journal.db"

    def configure(self, text: str | None = None) -> None:
        """Write the configuration, or this text in its place; JSON is YAML."""
        self.file.write_text(text or json.dumps(self.config, indent=1))

    def disturb(
        self, *, clock: int | None = None, fsync: int | None = None, error: int | None = None
    ) -> None:
        """From now on: seconds that the clock is off, microseconds per fsync, errno of writes."""
        for place, value in enumerate((clock, fsync, error)):
            if value is not None:
                self._control[place] = value
        path = self.folder / "kernel"
        with path.open("r+b" if path.exists() else "wb") as file:
            file.write(_CONTROL.pack(*self._control))

    async def start(self, **faults: Any) -> None:
        """Start the command itself, or one with *faults* built in."""
        self.number += 1
        program = (*FAULTY, json.dumps(faults)) if faults else COMMAND
        environment = {**os.environ}
        if self.kernel is not None:
            environment |= {
                "LD_PRELOAD": str(self.kernel),
                "SOAK_KERNEL": str(self.folder / "kernel"),
            }
        with (self.folder / f"bridge-{self.number}.log").open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(
                *program, "run", "-c", str(self.file), env=environment,
                stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.returncode is None

    def signal(self, number: signal.Signals) -> None:
        if self.runs and self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    async def kill(self) -> None:
        self.signal(signal.SIGKILL)
        if self.process is not None:
            await self.process.wait()

    async def terminate(self, patience: float = 30.0) -> int | None:
        """Its exit code; None if it did not end in time and was killed."""
        self.signal(signal.SIGTERM)
        return await self.ended(patience)

    async def ended(self, patience: float) -> int | None:
        assert self.process is not None
        try:
            async with asyncio.timeout(patience):
                return await self.process.wait()
        except TimeoutError:
            await self.kill()
            return None

    # --- over HTTP ---------------------------------------------------------------------------

    async def ask(self, path: str, method: str = "GET", **more: Any) -> tuple[int, str]:
        """Status and body; status 0 if it does not answer."""
        assert self.session is not None
        url = f"http://127.0.0.1:{self.port}{path}"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        limit = aiohttp.ClientTimeout(total=5)
        try:
            async with self.session.request(
                method, url, headers=headers, timeout=limit, **more
            ) as answer:
                return answer.status, await answer.text()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return 0, str(error) or type(error).__name__

    async def unready(self) -> list[str] | None:
        """What keeps it from being ready: `source`, `journal`, `sink NAME`; None if it is silent."""
        status, said = await self.ask("/readyz")
        if status not in {200, 503}:
            return None
        return [each["what"] for each in json.loads(said)["reasons"]]

    async def sample(self, now: float) -> Sample | None:
        why = await self.unready()
        return _used(self, now, why or [], ready=why == [])

    # --- its journal -------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """All CloudEvents in the journal."""
        sql = "SELECT seq, id, type, key, body FROM outbox ORDER BY seq"
        with self.reading() as db:
            found = db.execute(sql).fetchall()
        return [
            Row(self.vm, self.generation, seq, name, kind, key, bytes(body).decode())
            for seq, name, kind, key, body in found
        ]

    def unsettled(self) -> set[str]:
        """Ids that at least one sink has not settled."""
        with self.reading() as db:
            rows = db.execute(
                """SELECT o.id FROM outbox o JOIN sink s ON o.seq > s.low
                LEFT JOIN delivery d ON d.sink = s.name AND d.seq = o.seq WHERE d.how IS NULL"""
            ).fetchall()
        return {name for (name,) in rows}

    def grants(self) -> dict[str, str]:
        with self.reading() as db:
            return dict(db.execute("SELECT event, state FROM grants").fetchall())

    def about(self, event: str) -> Json:
        """The event, its mark and its votes, as the journal has them now."""
        with self.reading() as db:
            db.execute("BEGIN")
            found = db.execute("SELECT body FROM tracked WHERE key = ?", (event,)).fetchone()
            mark = db.execute("SELECT state, at FROM grants WHERE event = ?", (event,)).fetchone()
            states = dict(db.execute("SELECT id, body FROM announced").fetchall())
            rows = db.execute("SELECT body FROM vote WHERE event = ?", (event,)).fetchall()
        votes = [json.loads(body) for (body,) in rows]
        for vote in votes:
            vote["about"] = json.loads(states[vote["about"]])
        tracked = json.loads(found[0]) if found else None
        return {"event": tracked, "mark": list(mark) if mark else None, "votes": votes}

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        address = f"file:{self.journal}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True, timeout=2)) as db:
            yield db


def _used(bridge: Bridge, now: float, why: list[str], *, ready: bool) -> Sample | None:
    if bridge.process is None:
        return None
    place = Path(f"/proc/{bridge.process.pid}")
    with contextlib.suppress(OSError, KeyError, ValueError):
        lines = (place / "status").read_text().splitlines()
        facts = dict(line.split(":", 1) for line in lines if ":" in line)
        memory, threads = int(facts["VmRSS"].split()[0]), int(facts["Threads"])
        files = len(list((place / "fd").iterdir()))
        return Sample(bridge.vm, bridge.number, now, memory, files, threads, ready, why)
    return None
