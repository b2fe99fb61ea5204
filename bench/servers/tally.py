"""What arrived at a receiver: how much, and when."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.processes import PATIENCE

_LOOK = 0.002


@dataclass(slots=True)
class Tally:
    """Receivers add to it, from any thread."""

    bodies: list[bytes] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def took(self, body: bytes) -> None:
        self.bodies.append(body)
        self.times.append(time.perf_counter())

    async def reached(
        self, count: int, check: Callable[[], None], patience: float = PATIENCE
    ) -> float:
        """When number *count* arrived. *check* raises if nothing more can come."""
        until = time.perf_counter() + patience
        while len(self.times) < count:
            if time.perf_counter() > until:
                raise TimeoutError(f"{len(self.times)} of {count} messages arrived")
            check()
            await asyncio.sleep(_LOOK)
        return self.times[count - 1]

    def clear(self) -> None:
        self.bodies.clear()
        self.times.clear()


@dataclass(frozen=True, slots=True)
class Channel:
    """A place of its own at a receiver: `settings` is the section of the sink that sends there.

    `output` is the file that gets the standard output of the program, if the receiver reads that.
    """

    settings: dict[str, Any]
    tally: Tally = field(default_factory=Tally)
    output: Path | None = None
