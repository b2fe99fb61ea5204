"""What the bridge is to an approval source, for tests of one source by itself."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from bridge.plugins import ApprovalSettings, Delivery, Listening, Place
from bridge.plugins.sources import find_approvals

PLACE = Place({"vm_id": "vm-1", "vm_name": "web-1"})
PATIENCE = 20.0


@dataclass
class SourceReader:
    """Takes deliveries, remembers checkpoints, and notes what it hears about the lag."""

    settings: ApprovalSettings
    lookback: float = 3600.0
    checkpoints: dict[str, str] = field(default_factory=dict)
    heard: list[int | None] = field(default_factory=list)
    name: str = field(default_factory=lambda: f"source-{uuid4()}")
    connected: datetime | None = None

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[AsyncIterator[Delivery]]:
        plugin: Any = find_approvals(self.settings.type)
        kept, heard = dict(self.checkpoints), self.heard.append
        asked = Listening(self.name, kept, self.lookback, heard, self.connected)
        async with plugin.open(self.settings, PLACE, asked) as deliveries:
            yield deliveries

    async def take(self, deliveries: AsyncIterator[Delivery], count: int) -> list[Delivery]:
        """Record first, acknowledge second, as the bridge does."""
        taken: list[Delivery] = []
        async with asyncio.timeout(PATIENCE):
            while len(taken) < count:
                delivery = await anext(deliveries)
                if delivery.checkpoint:
                    self.checkpoints |= dict([delivery.checkpoint])
                if delivery.ack:
                    await delivery.ack()
                taken.append(delivery)
        return taken

    async def session(self, count: int) -> list[bytes]:
        async with self.open() as deliveries:
            return bodies(await self.take(deliveries, count))


def bodies(deliveries: list[Delivery]) -> list[bytes]:
    return [delivery.body for delivery in deliveries]
