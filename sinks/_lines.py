"""A file of lines that survives crashes, full disks and rotation, ours or logrotate's; blocking."""

import errno
import logging
import os
import re
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

log = logging.getLogger(__name__)

_FLAGS = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
_BLOCK = 4096
_ENOUGH = 8
"""How many of its first bytes identify a line."""
_STAMP = "%Y%m%dT%H%M%S.%fZ"
_STAMPED = r"\.\d{8}T\d{6}\.\d{6}Z"


@dataclass(frozen=True, slots=True)
class LineFile:
    """Opened for each batch, so it may be renamed or deleted between two batches.

    Only one process may write it. Every method may raise OSError.
    """

    path: Path
    max_size: int
    max_age: float
    keep: int
    mode: int
    head: bytes
    """What each line begins with; empty when that is not known."""

    def prepare(self) -> None:
        """Create the file if it is missing, and cut off a line that a crash left unfinished."""
        with self._opened(self._target()):
            pass

    def append(self, lines: bytes) -> None:
        """Append whole lines: all of them, or none and an OSError."""
        path = self._target()
        with self._opened(path) as descriptor:
            due = self._due(os.fstat(descriptor), len(lines))
        if due:
            self._rotate(path)  # closed by now: Windows does not rename an open file
        with self._opened(path) as descriptor:
            self._write(descriptor, lines)

    def _target(self) -> Path:
        """The file itself, behind symbolic links; Windows cannot follow every long path."""
        try:
            return self.path.resolve()
        except OSError:
            return self.path

    def inspect(self) -> bool:
        """Whether the file exists. Raises as `append` would, and changes nothing."""
        try:
            descriptor = os.open(self.path, _FLAGS)
        except FileNotFoundError:
            return False
        try:
            self._end_of_lines(descriptor)
        finally:
            os.close(descriptor)
        return True

    @contextmanager
    def _opened(self, path: Path) -> Generator[int]:
        try:
            descriptor = os.open(path, _FLAGS)
        except FileNotFoundError:
            descriptor = self._create(path)
        try:
            self._cut(path, descriptor)
            yield descriptor
        finally:
            os.close(descriptor)

    def _create(self, path: Path) -> int:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, _FLAGS | os.O_CREAT, self.mode)
        try:
            with suppress(OSError):  # a file system without modes
                path.chmod(self.mode)  # whatever the umask says
            self._sync(path.parent)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _cut(self, path: Path, descriptor: int) -> None:
        before = os.fstat(descriptor)
        end = self._end_of_lines(descriptor)
        if end is None:
            os.write(descriptor, b"\n")
        elif end < before.st_size:
            os.ftruncate(descriptor, end)
            # Keep the time of the last write: rotation by age depends on it.
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def _end_of_lines(self, descriptor: int) -> int | None:
        """Where the last whole line ends; None when the rest may belong to another program.

        Raises OSError when the rest is certainly not ours.
        """
        end = _last_newline(descriptor)
        os.lseek(descriptor, end, os.SEEK_SET)
        rest = os.read(descriptor, _ENOUGH)
        # A crash leaves the head of a CloudEvent, or zeros where the file system lost its data.
        if any(rest.startswith(head[: len(rest)]) for head in (b"{", b"\0", self.head) if head):
            return end
        if not self.head:
            return None
        raise OSError(None, "its last line is unfinished and not a CloudEvent; is it another file?")

    def _due(self, status: os.stat_result, more: int) -> bool:
        """Whether to rotate before *more* bytes are written.

        Time is cut into periods of `max_age` from 1970 on (1d: at midnight UTC), and a file has
        the writes of one. So the last write is enough, also after a restart. A birth time is not
        available everywhere, and the first CloudEvent's `time` may be old when a backlog goes out:
        each batch would then start a file, and `keep` would delete the backlog.
        """
        if not status.st_size:
            return False
        if self.max_size and status.st_size + more > self.max_size:
            return True
        return bool(self.max_age) and time.time() // self.max_age > status.st_mtime // self.max_age

    def _rotate(self, path: Path) -> None:
        moment = datetime.now(UTC)
        while os.path.lexists(name := f"{path}.{moment:{_STAMP}}"):
            moment += timedelta(microseconds=1)
        try:
            path.rename(name)
        except OSError as error:
            # No rights in the directory, a reader on Windows: writing matters more than rotating.
            log.warning("file.rotation_failed", extra={"path": str(path), "error": error.strerror})
            return
        with suppress(OSError):  # such as a file that is being read, on Windows
            self._prune(path)
        self._sync(path.parent)

    def _prune(self, path: Path) -> None:
        ours = re.compile(re.escape(path.name) + _STAMPED)
        rotated = sorted(entry for entry in path.parent.iterdir() if ours.fullmatch(entry.name))
        for old in rotated[: max(0, len(rotated) - self.keep)]:
            old.unlink()

    def _write(self, descriptor: int, lines: bytes) -> None:
        start = os.fstat(descriptor).st_size
        left = memoryview(lines)
        try:
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        except OSError:
            with suppress(OSError):  # opening the file again cuts the unfinished line
                if os.fstat(descriptor).st_size > start:
                    os.ftruncate(descriptor, start)
            raise

    def _sync(self, directory: Path) -> None:
        try:
            descriptor = os.open(directory, os.O_RDONLY)
        except PermissionError:  # Windows opens no directories, and keeps their entries by itself
            return
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno != errno.EINVAL:  # some network file systems do not support it
                raise
        finally:
            os.close(descriptor)


def _last_newline(descriptor: int) -> int:
    """How many bytes there are up to and including the last line feed."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(None, "it is not a regular file")
    end = status.st_size
    while end:
        begin = max(0, end - _BLOCK)
        os.lseek(descriptor, begin, os.SEEK_SET)
        newline = os.read(descriptor, end - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        end = begin
    return end
