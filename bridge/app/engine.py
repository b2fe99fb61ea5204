"""The moving parts of one bridge: poller, sinks, approval sources; started, changed and stopped."""

import asyncio
import json
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bridge.common.errors import Unavailable
from bridge.common.supervise import heard, supervise
from bridge.config import Config
from bridge.core.cloudevent import CloudEvent
from bridge.delivery.workers import Fleet
from bridge.metadata.answers import Accepted, Problem
from bridge.plugins import Delivery
from bridge.policy.votes import SINK
from bridge.runtime.runtime import Runtime
from bridge.source.poller import Poller

if TYPE_CHECKING:
    from bridge.approvals.listeners import Listeners


@dataclass(slots=True)
class Engine:
    """What makes work, and what takes it. All of it runs in one TaskGroup, by name."""

    runtime: Runtime
    group: asyncio.TaskGroup
    fleet: Fleet = field(init=False)
    _source: Poller = field(init=False)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _listeners: "Listeners | None" = None
    _listening: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        runtime, group = self.runtime, self.group
        self.fleet = Fleet(
            runtime.journal, lambda: runtime.identity.place, runtime.status.sinks, group, self._vote
        )
        self._source = self._poller()

    async def start(self, head_start: float = 1.0) -> None:
        """The poller first: the sooner it asks, the more notice is left."""
        self._poll()
        await heard(self._source.asked, head_start)
        await self.employ()

    async def listen(self) -> None:
        """Take approvals, and tell Azure what they come to."""
        # Imported here: the first poll need not wait for those who answer it.
        from bridge.approvals.decisions import Granting  # noqa: PLC0415
        from bridge.approvals.intake import Intake  # noqa: PLC0415
        from bridge.approvals.listeners import Listeners  # noqa: PLC0415
        from bridge.approvals.publisher import Speaker  # noqa: PLC0415
        from bridge.approvals.start_requests import Posting  # noqa: PLC0415
        from bridge.drills.runner import conduct  # noqa: PLC0415

        speaker = Speaker(self.runtime)
        intake = Intake(self.runtime, speaker)
        posting = Posting(self.runtime, speaker, self._approve, self._reread)
        granting = Granting(self.runtime, speaker, intake, posting)
        self.runtime.take_local = intake.take_local
        self._listeners = Listeners(self.runtime, intake, self.group)
        await self._listeners.employ(self.runtime.config.approvals.sources)
        self._run("granting", supervise("granting", granting.run, most=5.0))
        self._run("drills", supervise("drills", lambda: conduct(self.runtime), most=5.0))
        self._listening.set()

    async def employ(self) -> None:
        """Make the sinks ready: what is recorded from here on is theirs."""
        await self.fleet.employ(self.runtime.config.sinks)

    async def once(self) -> bool:
        """Poll one time; whether there was a useful answer."""
        return await self._source.once()

    async def change(self, old: Config, new: Config) -> None:
        """Go on with *new*; what it does not change is not disturbed."""
        await self.fleet.employ(new.sinks)
        if self._listeners is not None:
            await self._listeners.employ(new.approvals.sources)
        if old.source != new.source:
            await self._end("poller")
            self._source = self._poller()
            self._poll()

    async def stop(self, grace: float) -> int:
        """Stop what makes work, drain, then cancel what takes it; how much was not delivered."""
        if self._listeners is not None:
            await self._listeners.stop()
        await self._end("drills")
        await self._end("granting")
        await self._end("poller")
        left = await self.fleet.drain(grace)
        await self.fleet.stop()
        return left

    def _poller(self) -> Poller:
        runtime = self.runtime
        return Poller(
            runtime.config,
            runtime.journal,
            runtime.identity,
            runtime.status.source,
            runtime.version,
            runtime.boot_id,
        )

    def _poll(self) -> None:
        self._run("poller", supervise("poller", self._source.run, most=5.0))

    async def _approve(
        self, event_ids: Sequence[str], incarnation: int | str | None
    ) -> Accepted | Problem:
        return await self._source.approve(event_ids, incarnation)

    async def _vote(self, event: CloudEvent, sink: str) -> None:
        """A sink's `then: approve`: this VM's vote, once for each CloudEvent."""
        if "poller" in self._tasks:
            # A quick command may be done before we listen; it need not run again for that.
            await self._listening.wait()
        take, mine = self.runtime.take_local, self.runtime.identity.vm_name
        if take is None or mine is None:
            raise Unavailable("no approvals are taken yet")
        said = {"eventId": event.data["eventId"], "resource": mine, "id": f"{sink}:{event.id}"}
        await take(Delivery(json.dumps(said).encode()), SINK, f"sink:{sink}")

    def _reread(self) -> None:
        self._source.hurry()

    def _run(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks[name] = self.group.create_task(work, name=name)

    async def _end(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
