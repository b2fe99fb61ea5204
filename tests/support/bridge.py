"""Bridges on the VMs of one simulated group: real metadata service, real journals, no broker."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.ballots import delivery
from support.clock import ShiftedClock

from bridge.approvals.intake import Intake
from bridge.approvals.service import ApprovalService
from bridge.common.clock import Clock
from bridge.config import Config
from bridge.journal import Journal
from bridge.journal.grants import GrantState, grant_of
from bridge.journal.votes import votes
from bridge.metadata.answers import Accepted, SourceProblem
from bridge.metadata.budget import Budget
from bridge.metadata.client import Metadata
from bridge.policy.votes import Vote
from bridge.runtime.identity import Identity
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import Status
from bridge.simulator import VM, Scenario, Simulator
from bridge.source.endpoint import Endpoint
from bridge.source.poller import Poller

Post = Callable[..., Coroutine[Any, Any, Accepted | SourceProblem]]
Choose = Callable[[int | str | None], Awaitable[Sequence[str]]]
HURRIED = 500
"""Requests per second: Azure's limit of five is too slow for these tests."""


def make_config(folder: Path, endpoint: str, source: dict[str, Any], **approvals: Any) -> Config:
    approvals = {"require": "any", **approvals}
    return Config.model_validate(
        {
            "state_dir": folder,
            "source": {"endpoint": endpoint, **source},
            "approvals": approvals,
            "http": {"listen": None},
        }
    )


async def make_runtime(config: Config, journal: Journal, clock: Clock | None = None) -> Runtime:
    """What all parts of a bridge share, with a clock that a test may set."""
    identity, status = Identity(config, journal), Status(started=time.monotonic())
    clock = clock or ShiftedClock()
    await identity.recall()
    return Runtime(config, journal, identity, status, "1.2.3", "boot-1", clock)


async def _unreachable(*_: object) -> SourceProblem:
    return SourceProblem("unreachable", "Nobody is there.")


async def last_look(journal: Journal, choose: Choose) -> list[str]:
    """The events that a StartRequest would name now, for a test that takes Azure's place."""
    return list(await choose((await journal.load()).incarnation))


@dataclass(slots=True)
class Azure:
    """The metadata client: the simulator's, until a test replaces it."""

    approve: Post = _unreachable
    rereads: int = 0

    def read_again(self) -> None:
        self.rereads += 1


@dataclass(slots=True)
class Bridge:
    """One VM's bridge, driven by hand: it polls, takes votes and decides when a test says so."""

    runtime: Runtime
    metadata: Metadata
    endpoint: Endpoint = field(default_factory=Endpoint)
    azure: Azure = field(init=False)
    poller: Poller = field(init=False)
    service: ApprovalService = field(init=False)

    def __post_init__(self) -> None:
        self.endpoint._client = self.metadata
        self.azure = Azure(self.endpoint.approve)
        self.poller = Poller(self.runtime, self.endpoint)
        self.service = ApprovalService(self.runtime, self.azure)

    @property
    def clock(self) -> ShiftedClock:
        clock = self.runtime.clock
        assert isinstance(clock, ShiftedClock)
        return clock

    @property
    def intake(self) -> Intake:
        return self.service.intake

    @property
    def journal(self) -> Journal:
        return self.runtime.journal

    async def poll(self, times: int = 1) -> SourceProblem | None:
        problem = None
        for _ in range(times):
            problem = await self.poller.poll(self.metadata)
        return problem

    async def hear(self, event_id: str | None = None, **said: Any) -> None:
        """Give this bridge a published approval."""
        await self.intake.take(delivery(event_id, **said), "bus")

    async def chosen(self, choose: Choose) -> list[str]:
        return await last_look(self.journal, choose)

    async def consider(self) -> None:
        await self.service.decisions.consider()

    async def told(self, kind: str = "approval.") -> list[dict[str, Any]]:
        """The outcomes that it published, oldest first."""
        rows = await self.journal.run(
            lambda store: store.connection.execute(
                "SELECT body FROM outbox WHERE type GLOB ? ORDER BY seq",
                (f"azure.scheduledevents.{kind}*",),
            ).fetchall()
        )
        return [json.loads(row[0]) for row in rows]

    async def became(self) -> list[tuple[str, str | None]]:
        """Each outcome as its short type and, for a refusal, the reason."""
        told = await self.told()
        return [
            (
                one["type"].split(".")[3],
                one["data"]["reason"] if "refused" in one["type"] else None,
            )
            for one in told
        ]


@dataclass(slots=True)
class Group:
    """The simulated group, and the folder in which each VM keeps its journal."""

    folder: Path
    simulator: Simulator
    stack: AsyncExitStack

    @property
    def world(self):
        return self.simulator.world

    def posts(self) -> list[dict[str, Any]]:
        """The approvals that the simulated Azure received."""
        return [one for one in self.simulator.truth if one["what"] == "approval"]

    async def bridge(
        self, vm: str = "vm-0", source: dict[str, Any] | None = None, **approvals: Any
    ) -> Bridge:
        """Start a bridge; one with an earlier name continues with its journal."""
        endpoint = self.simulator.endpoints[vm]
        config = make_config(self.folder / vm, endpoint, source or {}, **approvals)
        journal = Journal(self.folder / vm / "journal.db")
        await journal.open()
        self.stack.push_async_callback(journal.close)
        runtime = await make_runtime(config, journal)
        metadata = await self.stack.enter_async_context(
            Metadata(endpoint, config.source.api_version, budget=Budget(HURRIED))
        )
        made = Bridge(runtime, metadata)
        await made.poll()
        return made


@asynccontextmanager
async def group(
    folder: Path, *vms: str, speed: float = 1.0, **scenario: Any
) -> AsyncGenerator[Group]:
    names = vms or ("vm-0",)
    described = Scenario.model_validate(
        {"vms": [VM(name=name).model_dump() for name in names], "strict": False, **scenario}
    )
    async with Simulator(described, speed=speed) as simulator, AsyncExitStack() as stack:
        yield Group(folder, simulator, stack)


def plan(made: Group, name: str = "e", **more: Any) -> str:
    """A reboot of two VMs that waits for its approval; its EventId."""
    usual = {"type": "Reboot", "notice": "1h", "resources": ["vm-0", "vm-1"], "started_for": None}
    return str(made.world.create(name=name, **{**usual, **more}).event.event_id)


def event_id(made: Group, name: str = "e") -> str:
    return str(made.world.find(name).event.event_id)


async def cast_votes(bridge: Bridge, key: str, life: int = 1) -> list[Vote]:
    """The votes on an event, as the journal has them."""
    return await bridge.journal.run(lambda store: votes(store, key.upper(), life))


def counted(bridge: Bridge, outcome: str, reason: str = "") -> int:
    return bridge.runtime.status.approvals.get((outcome, reason), 0)


async def grant_state(bridge: Bridge, key: str, life: int = 1) -> GrantState | None:
    return await bridge.journal.run(lambda store: grant_of(store, (key, life)))


def reconfigure(bridge: Bridge, **approvals: Any) -> None:
    """Put changed keys of `approvals` into effect, as a reload does."""
    config = bridge.runtime.config
    new = Config.model_validate({"approvals": approvals}).approvals
    changed = {name: getattr(new, name) for name in approvals}
    asked = config.approvals.model_copy(update=changed)
    bridge.runtime.configure(config.model_copy(update={"approvals": asked}))


@asynccontextmanager
async def deciding(bridge: Bridge) -> AsyncGenerator[None]:
    """Let the bridge decide on its own after every change."""
    task = asyncio.create_task(bridge.service.decisions.run())
    try:
        yield
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
