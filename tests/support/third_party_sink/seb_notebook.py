"""A sink that notes what it gets in a file, one line each, and turns away what is too long."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from bridge.plugins import (
    CloudEvent,
    Place,
    Rejected,
    Result,
    Send,
    SinkPlugin,
    SinkSettings,
    Unavailable,
)


class NotebookSettings(SinkSettings):
    """Where the notebook lies, and how much fits on a line."""

    type: Literal["notebook"]
    page: Path
    widest: int = 65536

    def describe(self) -> str:
        return f"notes CloudEvents in {self.page}"


@asynccontextmanager
async def connect(settings: NotebookSettings, place: Place) -> AsyncGenerator[Send]:
    try:
        page = settings.page.open("ab", buffering=0)
    except OSError as error:
        raise Unavailable(f"no notebook: {error.strerror}") from error

    async def send(batch: Sequence[CloudEvent]) -> Sequence[Result]:
        return [note(cloudevent) for cloudevent in batch]

    def note(cloudevent: CloudEvent) -> Result:
        if len(cloudevent.body) > settings.widest:
            return Rejected(f"longer than {settings.widest} bytes")
        page.write(cloudevent.body + b"\n")
        return None

    with page:
        yield send


sink = SinkPlugin(settings=NotebookSettings, open=connect)
