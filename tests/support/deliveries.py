"""What the journal knows about deliveries to the sink `sink`, as tests of dispatchers ask it."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from support.journal_tools import everything

from bridge.core.cloudevent import CloudEvent
from bridge.delivery.workers import SinkWorkers
from bridge.journal import Journal
from bridge.journal.cursors import dead_letters
from bridge.plugins import Place


@asynccontextmanager
async def fleet_of(journal: Journal) -> AsyncGenerator[SinkWorkers]:
    """The workers of a bridge, which stop at the end."""
    async with asyncio.TaskGroup() as group:
        fleet = SinkWorkers(journal, Place, {}, group)
        try:
            yield fleet
        finally:
            await fleet.stop()


def ids(path: Path) -> list[str]:
    """The CloudEvents in a file, in their order."""
    content = path.read_text() if path.exists() else ""
    return [json.loads(line)["id"] for line in content.splitlines()]


async def record(journal: Journal, *events: CloudEvent) -> None:
    await journal.append(events, time.time())


async def left(journal: Journal, sink: str = "sink") -> list[str]:
    return await journal.run(lambda store: everything(store, sink))


async def comes_to(journal: Journal, expected: list[str], sink: str = "sink") -> None:
    """Wait: the receiver has it a moment before the journal knows."""
    async with asyncio.timeout(20):
        while await left(journal, sink) != expected:
            await asyncio.sleep(0.002)


async def letters(journal: Journal):
    return await journal.run(dead_letters)


async def column(journal: Journal, name: str, event_id: str) -> Any:
    sql = f"SELECT {name} FROM delivery JOIN outbox USING (seq) WHERE id = ? AND sink = 'sink'"
    found = await journal.run(lambda store: store.connection.execute(sql, (event_id,)).fetchone())
    return found[0] if found else None


def said_of_sinks(caplog) -> list[str]:
    return [each.message for each in caplog.records if each.message.startswith("sink.")]


def soon(seconds: float) -> dict[str, Any]:
    """Data of a CloudEvent about what happens so many seconds from now."""
    return {"notBefore": (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()}
