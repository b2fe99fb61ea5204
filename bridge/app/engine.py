"""The moving parts of one bridge: starts, replaces and stops the poller, sinks and approvals."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bridge.app.traces import TraceExport
from bridge.common.errors import Unavailable
from bridge.common.supervise import heard, supervise
from bridge.core.cloudevent import CloudEvent
from bridge.plugins import Place
from bridge.runtime.runtime import Runtime
from bridge.source.endpoint import Endpoint
from bridge.source.poller import Poller

if TYPE_CHECKING:
    from bridge.approvals.service import ApprovalService
    from bridge.delivery.workers import SinkWorkers


@dataclass(slots=True)
class Engine:
    """The poller, the sink workers and the approvals, as named tasks in one TaskGroup."""

    runtime: Runtime
    group: asyncio.TaskGroup
    _endpoint: Endpoint = field(default_factory=Endpoint)
    _poller: Poller = field(init=False)
    _workers: "SinkWorkers | None" = None
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _approvals: "ApprovalService | None" = None
    _takes_votes: asyncio.Event = field(default_factory=asyncio.Event)
    _traces: TraceExport = field(init=False)

    def __post_init__(self) -> None:
        self._poller = Poller(self.runtime, self._endpoint)
        self._traces = TraceExport(self.runtime, self.group)

    @property
    def workers(self) -> "SinkWorkers":
        """What delivers to the sinks. Imported at its first use, which is after the first poll."""
        if self._workers is None:
            from bridge.delivery.workers import SinkWorkers  # noqa: PLC0415  after the first poll

            runtime = self.runtime
            self._workers = SinkWorkers(
                runtime.journal,
                self._place,
                runtime.status.sinks,
                self.group,
                self._vote,
                runtime.tracing,
            )
        return self._workers

    async def start(self, head_start: float = 1.0) -> None:
        """Start with the poller: the sooner it asks, the more notice is left."""
        self._poll()
        await heard(self._poller.asked, head_start)
        await self.configure_sinks()

    async def listen(self) -> None:
        """Accept approvals, and send StartRequests to Azure."""
        # Imported here, so that the first poll does not wait for it.
        from bridge.approvals.service import ApprovalService  # noqa: PLC0415  after the first poll
        from bridge.drills.runner import conduct  # noqa: PLC0415  after the first poll

        approvals = self._approvals = ApprovalService(self.runtime, self._endpoint)
        await self.configure_sources()
        self._run("granting", supervise("granting", approvals.decisions.run, most=5.0))
        self._run("drills", supervise("drills", lambda: conduct(self.runtime), most=5.0))
        self._takes_votes.set()

    async def configure_sinks(self) -> None:
        """Start the configured sinks: they get everything recorded from here on."""
        await self.workers.configure(self.runtime.config.sinks)

    async def configure_sources(self) -> None:
        """Read the configured approval sources, and no others."""
        if self._approvals is not None:
            sources = self.runtime.config.approvals.sources
            await self._approvals.listeners.configure(sources, self.group)

    async def configure_traces(self) -> None:
        """Export traces to the configured receiver, if there is one."""
        await self._traces.configure()

    async def restart_poller(self) -> None:
        """Replace the poller by one with the current configuration."""
        await self._end("poller")
        self._poller = Poller(self.runtime, self._endpoint)
        self._poll()

    async def once(self) -> bool:
        """Poll once; return whether there was a usable answer."""
        return await self._poller.once()

    async def stop(self, grace: float) -> int:
        """Stop the poller, drain, then stop the workers; return how much was not delivered."""
        if self._approvals is not None:
            await self._approvals.listeners.stop()
        await self._end("drills")
        await self._end("granting")
        await self._end("poller")
        left = await self.workers.drain(grace)
        await self.workers.stop()
        await self._traces.close()
        return left

    def _poll(self) -> None:
        self._run("poller", supervise("poller", self._poller.run, most=5.0))

    async def _vote(self, event: CloudEvent, sink: str) -> None:
        """Vote for a sink; wait until we accept votes, so that a fast sink need not run again."""
        if "poller" in self._tasks:
            await self._takes_votes.wait()
        if self._approvals is None:
            raise Unavailable("the bridge does not accept approvals yet")
        await self._approvals.vote_for_sink(event, sink)

    def _place(self) -> Place:
        return self.runtime.identity.place

    def _run(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks[name] = self.group.create_task(work, name=name)

    async def _end(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
