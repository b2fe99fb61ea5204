"""A sink that writes what it gets to a file, one line each, and a short format for it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from bridge.plugins import (
    CloudEvent,
    Format,
    FormatPlugin,
    FormatSettings,
    Place,
    Rejected,
    Result,
    Send,
    SinkPlugin,
    SinkSettings,
    Unavailable,
    kind_of,
    open_format,
)


class NotebookSettings(SinkSettings):
    """Where the notebook lies, and how much fits on a line."""

    type: Literal["notebook"]
    page: Path
    widest: int = 65536

    def describe(self) -> str:
        return f"notes CloudEvents as {self.words} in {self.page}"


@asynccontextmanager
async def connect(settings: NotebookSettings, place: Place) -> AsyncGenerator[Send]:
    try:
        page = settings.page.open("ab", buffering=0)
    except OSError as error:
        raise Unavailable(f"no notebook: {error.strerror}") from error
    form = open_format(settings)

    async def send(batch: Sequence[CloudEvent]) -> Sequence[Result]:
        return [note(line) for line in form.encode_each(batch)]

    def note(line: bytes | Rejected) -> Result:
        if isinstance(line, Rejected):
            return line
        if len(line) > settings.widest:
            return Rejected(f"longer than {settings.widest} bytes")
        page.write(line + b"\n")
        return None

    with page:
        yield send


sink = SinkPlugin(settings=NotebookSettings, open=connect)


class GistSettings(FormatSettings):
    """What stands between the words."""

    type: Literal["gist"]
    between: str = " "


def make_gist(settings: GistSettings) -> Format:
    def encode(cloudevent: CloudEvent) -> bytes:
        if "eventType" not in cloudevent.data:
            raise Rejected("it is not about a scheduled event")
        return settings.between.join((cloudevent.data["eventType"], kind_of(cloudevent))).encode()

    def wants(cloudevent: CloudEvent) -> bool:
        return not kind_of(cloudevent).startswith(("source.", "bridge."))

    return Format(encode, "text/plain; charset=utf-8", wants)


gist = FormatPlugin(settings=GistSettings, open=make_gist)
