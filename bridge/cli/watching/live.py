"""The loop of the live view: reads what is pending, counts down, and draws."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bridge.cli.client import RequestRefused, Unreachable
from bridge.cli.shell import Ask
from bridge.cli.watching.picture import Picture
from bridge.cli.watching.screen import Screen, screen

TICK = 0.25
"""Seconds between two looks at the clock and at the size of the terminal."""
EVERY = 20
"""After how many looks the view reads what is pending again, even without news."""


@dataclass(slots=True)
class LiveView:
    """Keeps the picture up to date while a task reads the stream into it."""

    ask: Ask
    own: bool = False
    picture: Picture = field(default_factory=Picture)
    _stale: bool = True
    _looks: int = 0

    def show(self, cloudevent: Mapping[str, Any]) -> None:
        self.picture.latest.append(cloudevent)
        self._stale = True

    def away(self, why: str) -> None:
        self.picture.trouble = why

    def here(self) -> None:
        self.picture.trouble = None
        self._stale = True

    async def run(self, reading: "asyncio.Task[int]") -> int:
        """Draw until *reading* ends, which raises what it raised."""
        try:
            with screen() as drawn:
                while not reading.done():
                    await self._look(drawn)
                    await asyncio.wait({reading}, timeout=TICK)
        finally:
            reading.cancel()
        return await reading

    async def _look(self, drawn: Screen) -> None:
        self._looks += 1
        if self._stale or self._looks % EVERY == 0:
            await self.refresh()
        size = drawn.size
        drawn.draw(self.picture.lines(datetime.now(UTC), *size), size)

    async def refresh(self) -> None:
        """Read what is pending; the stream says it when the bridge is away."""
        self._stale = False
        try:
            found = (await self.ask("GET", "/api/v1/events?pending=true"))["events"]
            self.picture.vm = self.picture.vm or (await self.ask("GET", "/api/v1"))["vm"]
        except (Unreachable, RequestRefused):
            return
        shown = [event for event in found if event["affected"] is not False or not self.own]
        self.picture.events = shown
