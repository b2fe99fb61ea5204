"""The sink `stdout`: CloudEvents on stdout, one per line, as JSON or in another format."""

import os
import sys
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Literal, TextIO
from weakref import WeakKeyDictionary

from bridge.plugins import (
    CloudEvent,
    Place,
    Result,
    Send,
    SinkPlugin,
    SinkSettings,
    Unavailable,
    open_format,
)
from sinks._lane import Lane


class StdoutSettings(SinkSettings):
    """It has no keys of its own."""

    type: Literal["stdout"] = "stdout"

    @property
    def connects(self) -> bool:
        return True

    def describe(self) -> str:
        return f"writes each CloudEvent to stdout as one line of {self.words}"


class _Pipe:
    """A stream that gets whole lines only, even when a write is interrupted."""

    def __init__(self, descriptor: int) -> None:
        self.lane = Lane()
        self._descriptor = descriptor
        self._rest = b""

    def write(self, lines: Sequence[bytes], stop: threading.Event) -> list[Result]:
        """Write until all is done or *stop* is set, but finish a line that was started."""
        results: list[Result] = []
        try:
            for line in lines:
                if stop.is_set():
                    break
                self._line(line)
                results.append(None)
        except OSError as error:
            unavailable = Unavailable(f"stdout: {_reason(error)}")
            results += [unavailable] * (len(lines) - len(results))
        return results

    def _line(self, line: bytes) -> None:
        self._finish()
        self._rest = line[os.write(self._descriptor, line) :]
        self._finish()

    def _finish(self) -> None:
        while self._rest:
            self._rest = self._rest[os.write(self._descriptor, self._rest) :]


def _reason(error: OSError) -> str:
    if isinstance(error, BrokenPipeError):
        return "its reader has closed it"
    if isinstance(error, BlockingIOError):
        return "its reader is too slow"
    return error.strerror or str(error)


# An unfinished line outlives its session, and all sinks of this type share stdout.
_pipes: WeakKeyDictionary[TextIO, _Pipe] = WeakKeyDictionary()


def _stdout() -> _Pipe:
    stream = sys.__stdout__
    # Never use descriptor 1 directly: without stdout, it may belong to another file.
    if stream is None:
        raise Unavailable("stdout is closed")
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        raise Unavailable("stdout is closed") from None
    return _pipes.setdefault(stream, _Pipe(descriptor))


@asynccontextmanager
async def _open(settings: StdoutSettings, _place: Place) -> AsyncGenerator[Send]:
    pipe, form = _stdout(), open_format(settings)

    async def send(batch: Sequence[CloudEvent]) -> Sequence[Result]:
        said = form.encode_each(batch)
        lines = [line + b"\n" for line in said if isinstance(line, bytes)]
        stop = threading.Event()
        try:
            written = iter(await pipe.lane.run(partial(pipe.write, lines, stop)))
        finally:
            stop.set()
        return [next(written) if isinstance(line, bytes) else line for line in said]

    yield send


sink = SinkPlugin(settings=StdoutSettings, open=_open)
