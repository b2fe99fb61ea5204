"""The sink `file`: CloudEvents in a file, one per line in any format, rotated by size and age."""

import re
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar
from weakref import WeakValueDictionary

from pydantic import Field, field_validator

from bridge.plugins import (
    CloudEvent,
    Duration,
    Format,
    Place,
    Result,
    Send,
    SinkPlugin,
    SinkSettings,
    Size,
    Unavailable,
    open_format,
)
from sinks._lane import Lane
from sinks._lines import LineFile

T = TypeVar("T")
_MODE = r"^0?[67][0-7]{2}$"


class FileSettings(SinkSettings):
    """The file, when to rotate it, and who may read it."""

    type: Literal["file"]
    path: str = Field(min_length=1, description="may contain {vm_name} and so on")
    max_size: Size = Field(104857600, description="rotate before it exceeds this size; 0B: never")
    max_age: Duration = Field(86400.0, description="rotate at each full 1d, 1h … in UTC; 0s: never")
    keep: int = Field(7, ge=0, description="how many rotated files to keep")
    mode: str = Field("0640", pattern=_MODE, description="permissions of a new file, in quotes")

    @field_validator("path")
    @classmethod
    def _placeholders(cls, path: str) -> str:
        return Place.validate(path)

    @field_validator("mode", mode="before")
    @classmethod
    def _octal(cls, mode: object) -> object:
        if not isinstance(mode, str) or not re.match(_MODE, mode):
            raise ValueError('must be in quotes, as in "0640", and let the owner write')
        return mode

    @property
    def connects(self) -> bool:
        return True

    def describe(self) -> str:
        by = [word for word, on in (("size", self.max_size), ("age", self.max_age)) if on]
        rotated = f"rotated by {' and '.join(by)}, {self.keep} kept" if by else "never rotated"
        return f"appends CloudEvents as {self.words} lines to {self.path}, {rotated}"


# A write that hangs outlives its session, and the next session must not overtake it.
_lanes: WeakValueDictionary[Path, Lane] = WeakValueDictionary()


@asynccontextmanager
async def _open(settings: FileSettings, place: Place) -> AsyncGenerator[Send]:
    form = open_format(settings)
    file = _file(settings, place, form)
    lane = _lanes.setdefault(file.path, Lane())

    async def send(batch: Sequence[CloudEvent]) -> Sequence[Result]:
        said = form.encode_each(batch)
        lines = b"".join(line + b"\n" for line in said if isinstance(line, bytes))
        await lane.run(partial(_translated, file.path, partial(file.append, lines)))
        return [None if isinstance(line, bytes) else line for line in said]

    await lane.run(partial(_translated, file.path, file.prepare))
    yield send


async def _check(settings: FileSettings, place: Place) -> str:
    file = _file(settings, place, open_format(settings))
    return await Lane().run(partial(_translated, file.path, partial(_prove, file)))


def _prove(file: LineFile) -> str:
    """Do not touch a file that a running bridge may write, and leave no file behind."""
    exists = file.inspect()
    directory = file.path.parent
    while not directory.exists():
        directory = directory.parent
    try:
        with tempfile.TemporaryFile(dir=directory):
            return f"{file.path} can be {'written' if exists else 'created'}"
    except OSError as error:
        if not exists:
            raise
        return f"{file.path} can be written, but not rotated: {error.strerror}"


def _file(settings: FileSettings, place: Place, form: Format) -> LineFile:
    return LineFile(
        path=Path(place.fill(settings.path)).absolute(),
        max_size=settings.max_size,
        max_age=settings.max_age,
        keep=settings.keep,
        mode=int(settings.mode, 8),
        head=form.begins,
    )


def _translated(path: Path, call: Callable[[], T]) -> T:
    try:
        return call()
    except OSError as error:
        elsewhere = error.filename is not None and str(error.filename) != str(path)
        where = f" ({error.filename})" if elsewhere else ""
        raise Unavailable(f"cannot write {path}: {error.strerror or error}{where}") from error


sink = SinkPlugin(settings=FileSettings, open=_open, check=_check)
