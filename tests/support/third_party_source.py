"""An approval source of a third party: the lines of a file, one message each.

It is registered by `register` in this process, and by `faulty_bridge` in others.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any, ClassVar, Literal

import bridge.plugins
from bridge.plugins import (
    ApprovalPlugin,
    ApprovalSettings,
    Delivery,
    Listening,
    Place,
    SinkSettings,
    Unavailable,
)

TYPE = "tail"
EVERY = 0.02


def acknowledged() -> None:
    """Called after each acknowledgment; a test may replace it."""


class TailSettings(ApprovalSettings):
    """Which file."""

    SHARED: ClassVar[tuple[str, ...]] = ("path",)

    type: Literal["tail"]
    path: Path

    def describe(self) -> str:
        return f"are the lines of {self.path}"

    def overlaps(self, sink: SinkSettings) -> bool:
        return str(getattr(sink, "path", None)) == str(self.path)


@asynccontextmanager
async def follow(
    settings: TailSettings, place: Place, listening: Listening
) -> AsyncGenerator[AsyncIterator[Delivery]]:
    """The checkpoint is how many bytes were read; an acknowledgment is a line in another file."""
    if not settings.path.exists():
        raise Unavailable(f"there is no {settings.path}")
    written = settings.path.with_suffix(".acked")

    def ack_of(offset: int) -> Any:
        async def ack() -> None:
            with written.open("a") as file:
                file.write(f"{offset}\n")
            acknowledged()

        return ack

    async def lines() -> AsyncIterator[Delivery]:
        offset = int(listening.checkpoints.get("offset", "0"))
        while True:
            listening.heard(settings.path.stat().st_size - offset)
            with settings.path.open("rb") as file:
                file.seek(offset)
                line = file.readline()
            if not line.endswith(b"\n"):
                await asyncio.sleep(EVERY)
                continue
            position = f"{settings.path.name}/{offset}"
            offset += len(line)
            yield Delivery(
                line.rstrip(b"\n"),
                position=position,
                log=f"{listening.name}@{settings.path}",
                ack=ack_of(offset),
                checkpoint=("offset", str(offset)),
            )

    yield lines()


approvals = ApprovalPlugin(settings=TailSettings, open=follow)


def register() -> Any:
    """Make `tail` a type of approval source, as an installed package would; returns the undoing."""
    original = bridge.plugins.entry_points.entry_points
    point = EntryPoint(TYPE, f"{__name__}:approvals", bridge.plugins.sources.APPROVALS)

    groups = (
        bridge.plugins.sinks.SINKS,
        bridge.plugins.formats.FORMATS,
        bridge.plugins.sources.APPROVALS,
    )

    def entry_points() -> Any:
        found = original()
        return EntryPoints((point, *(one for group in groups for one in found.select(group=group))))

    def use(function: Any) -> None:
        bridge.plugins.entry_points.entry_points = function
        bridge.plugins.entry_points.look_again()

    def undo() -> None:
        use(original)

    use(entry_points)
    return undo
