"""`seb` on a real terminal of a given size, and what is on its screen."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from support.until import until

SEB = str(Path(sys.executable).with_name("seb"))
HOME = "\x1b[H"
_PAINT = re.compile(r"\x1b\[[0-9;]*[mKJ]|\x1b\[\?[0-9]+[hl]")


@dataclass(slots=True)
class Terminal:
    """A process and the near side of its terminal."""

    process: asyncio.subprocess.Process
    master: int
    raw: str = ""

    def lines(self) -> list[str]:
        """The last picture that was drawn; for a program that only prints, all of its output."""
        text = _PAINT.sub("", self.raw.rpartition(HOME)[2]).replace("\r", "")
        return text.rstrip("\n").split("\n")

    def text(self) -> str:
        return "\n".join(self.lines())

    def resize(self, columns: int, rows: int) -> None:
        resize(self.master, columns, rows)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    async def see(self, seen: Callable[[], object], what: str = "the text") -> None:
        await until(seen, what, lambda: self.raw[-4000:])

    def read(self) -> None:
        try:
            self.raw += os.read(self.master, 2**16).decode("utf-8", "replace")
        except OSError:  # the process has closed its side
            asyncio.get_running_loop().remove_reader(self.master)


def resize(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@asynccontextmanager
async def on_terminal(*words: str, columns: int = 80, rows: int = 24) -> AsyncGenerator[Terminal]:
    """Run `seb` with these words."""
    master, slave = pty.openpty()
    resize(master, columns, rows)
    process = await asyncio.create_subprocess_exec(
        SEB, *words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(slave)
    made = Terminal(process, master)
    loop = asyncio.get_running_loop()
    loop.add_reader(master, made.read)
    try:
        yield made
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        loop.remove_reader(master)
        os.close(master)


async def printed(work: Awaitable[int], columns: int = 80) -> tuple[int, list[str]]:
    """The exit code of a command in this process, and the lines that it prints on a terminal."""
    master, slave = pty.openpty()
    resize(master, columns, 24)
    reading = asyncio.create_task(asyncio.to_thread(_all, master))
    with os.fdopen(slave, "w", encoding="utf-8") as screen, redirect_stdout(screen):
        code = await work
    text = _PAINT.sub("", await reading).replace("\r", "")
    os.close(master)
    return code, text.rstrip("\n").split("\n")


def _all(master: int) -> str:
    """Everything that is written until the other side is closed."""
    pieces: list[bytes] = []
    try:
        while piece := os.read(master, 2**16):
            pieces.append(piece)
    except OSError:  # that is how Linux reports the end
        pass
    return b"".join(pieces).decode()
