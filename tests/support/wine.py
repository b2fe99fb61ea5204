"""CPython for Windows under Wine: a prefix of its own, and the package of the bridge inside it."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 120.0
"""The longest wait for one command on a busy machine."""
DATA = "scheduled-events-bridge"


@dataclass
class Wine:
    """A running Windows, as far as Wine is one; `package` is what `scripts/windows-zip` made."""

    prefix: Path
    package: Path
    _anchor: subprocess.Popen[bytes] | None = None

    @property
    def drive(self) -> Path:
        return self.prefix / "drive_c"

    @property
    def data(self) -> Path:
        r"""`%ProgramData%\scheduled-events-bridge`, seen from Linux."""
        return self.drive / "ProgramData" / DATA

    @property
    def environment(self) -> dict[str, str]:
        names = {"WINEPREFIX": str(self.prefix), "WINEARCH": "win64", "WINEDEBUG": "-all"}
        return {**os.environ, **names, "PYTHONUTF8": "1"}

    @property
    def python(self) -> str:
        return str(self.package / "python" / "python.exe")

    def boot(self) -> None:
        """Start Wine, and what keeps it running: without a process, it stops its services."""
        program = "import sys; print('here', flush=True); sys.stdin.read()"
        self._anchor = subprocess.Popen(
            ["wine", self.python, "-I", "-c", program],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._anchor.stdout is not None
        assert self._anchor.stdout.readline().strip() == b"here"

    def shut_down(self) -> None:
        """End everything in this prefix, as a power cut would."""
        subprocess.run(["wineserver", "-k"], env=self.environment, check=False, timeout=PATIENCE)
        subprocess.run(["wineserver", "-w"], env=self.environment, check=False, timeout=PATIENCE)
        if self._anchor is not None:
            self._anchor.communicate(timeout=PATIENCE)

    async def run(self, *words: str, patience: float = PATIENCE) -> tuple[int, str]:
        """The exit code and the output of a Python program."""
        process = await asyncio.create_subprocess_exec(
            "wine", self.python, *words, env=self.environment, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        try:
            async with asyncio.timeout(patience):
                said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return await process.wait(), said.decode("utf-8", "replace").replace("\r\n", "\n")

    async def seb(self, *words: str) -> str:
        """The output of a command of the bridge that ends well."""
        code, said = await self.run("-I", "-m", "bridge.cli", *words)
        assert code == 0, f"seb {' '.join(words)} ended with {code}:\n{said}\n{self.log()}"
        return said

    def log(self) -> str:
        """What the service has logged so far."""
        with contextlib.suppress(FileNotFoundError):
            return (self.data / "logs" / "bridge.log").read_text("utf-8", "replace")
        return "there is no log"

    def kill_service(self) -> None:
        """Kill the process of the service with SIGKILL."""
        for pid in self._services():
            os.kill(pid, signal.SIGKILL)

    @property
    def service_lives(self) -> bool:
        return bool(self._services())

    def _services(self) -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                ours = (
                    f"WINEPREFIX={self.prefix}\0".encode() in (path.parent / "environ").read_bytes()
                )
                if "service run" in words and ours:
                    found.append(int(path.parent.name))
        return found


def windows_path(path: Path) -> str:
    """A file of Linux, as Windows names it."""
    return "Z:" + str(path).replace("/", "\\")


def copy_prefix(source: Path, target: Path) -> None:
    """A prefix that shares its libraries with *source*, and has a registry and a drive of its own."""
    subprocess.run(["cp", "-as", str(source), str(target)], check=True)
    shutil.rmtree(target / "dosdevices")
    shutil.copytree(source / "dosdevices", target / "dosdevices", symlinks=True)
    for registry in source.glob("*.reg"):
        (target / registry.name).unlink()
        shutil.copy(registry, target / registry.name)


@contextlib.contextmanager
def wine_in(folder: Path, prefix: Path, package: Path) -> Iterator[Wine]:
    """Wine, running from here to the end of the block."""
    copy_prefix(prefix, folder / "prefix")
    wine = Wine(folder / "prefix", package)
    wine.boot()
    try:
        yield wine
    finally:
        wine.shut_down()


def configuration(**keys: Any) -> dict[str, Any]:
    """The keys that every service under test has."""
    return {"http": {"listen": None}, "stop_grace": "5s", **keys}
