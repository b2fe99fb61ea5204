"""A poller on a real journal under the simulated service, one round at a time."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.bridge import Bridge, make_runtime
from support.clock import ShiftedClock
from support.journal_tools import opened
from support.until import until

from bridge.config import Config
from bridge.metadata.budget import Budget
from bridge.metadata.client import Metadata
from bridge.runtime.status import SourceStatus
from bridge.simulator import Simulator, World
from bridge.source.endpoint import Endpoint
from bridge.source.poller import Poller

VM = "vm-0"


@dataclass(slots=True)
class PolledBridge(Bridge):
    """A bridge under a simulated service without limits; `transitions` is what it published."""

    simulator: Simulator = field(kw_only=True)

    @property
    def world(self) -> World:
        return self.simulator.world

    @property
    def status(self) -> SourceStatus:
        return self.runtime.status.source

    async def kinds(self, *without: str) -> list[str]:
        return kinds(await self.told(), *without)

    async def transitions(self) -> list[str]:
        return await self.kinds("source.snapshot", "source.degraded", "source.recovered")

    async def told(self, kind: str = "") -> list[dict[str, Any]]:
        return await Bridge.told(self, kind)


def kinds(told: list[dict[str, Any]], *without: str) -> list[str]:
    said = [e["type"].removeprefix("azure.scheduledevents.").removesuffix(".v1") for e in told]
    return [kind for kind in said if kind not in without]


@contextlib.asynccontextmanager
async def restarted(
    simulator: Simulator,
    path: Path,
    boot: str = "boot-1",
    clock: ShiftedClock | None = None,
    **source: Any,
) -> AsyncGenerator[PolledBridge]:
    """One process: at first it knows what the journal holds."""
    usual = {"endpoint": simulator.endpoint, "poll_interval": "200ms", "degraded_after": "5m"}
    config = Config.model_validate({"source": {**usual, **source}})
    async with opened(path, "sink") as journal:
        runtime = await make_runtime(config, journal, clock)
        runtime.boot_id = boot
        budget = Budget(limit=10_000)
        async with Metadata(simulator.endpoint, "2020-07-01", budget=budget) as metadata:
            yield PolledBridge(runtime, metadata, Endpoint(budget), simulator=simulator)


def next_second(simulator: Simulator) -> None:
    """CloudEvents about the source have one id per second: move Azure's clock on."""
    simulator.world.fault("skew", skew="10s")


async def run_for(poller: Poller, done) -> None:
    task = asyncio.create_task(poller.run())
    try:
        await until(lambda: done() or task.done())
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
