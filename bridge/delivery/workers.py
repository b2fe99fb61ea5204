"""Starts, replaces, drains and stops the dispatchers of one bridge."""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from bridge.common.supervise import supervise
from bridge.delivery.dispatcher import Dispatcher
from bridge.delivery.vote_on_success import CastVote, no_vote
from bridge.journal import Journal
from bridge.journal.cursors import backlog
from bridge.plugins import Place, SinkSettings
from bridge.plugins.sinks import find_sink
from bridge.runtime.status import SinkStatus
from bridge.telemetry.cloudevents import traced_sink
from bridge.telemetry.tracing import Tracing


@dataclass(frozen=True, slots=True)
class Worker:
    """A dispatcher and the task that keeps it running."""

    dispatcher: Dispatcher
    task: asyncio.Task[None]


@dataclass(slots=True)
class SinkWorkers:
    """One worker per configured sink; its place in the journal belongs to the sink's name."""

    journal: Journal
    place: Callable[[], Place]
    status: dict[str, SinkStatus]
    group: asyncio.TaskGroup
    vote: CastVote = no_vote
    tracing: Tracing = field(default_factory=Tracing)
    _workers: dict[str, Worker] = field(default_factory=dict)

    async def configure(self, sinks: Mapping[str, SinkSettings]) -> None:
        """Match the workers to *sinks*: unchanged ones continue, others end after their batch.

        Stopped sinks resume: an operator who reloads has fixed the cause.
        """
        for name in list(self._workers):
            if self._workers[name].dispatcher.settings != sinks.get(name):
                await self._remove(name)
        self._resume()
        await self.journal.register(list(sinks), time.time())
        for name, settings in sinks.items():
            if name not in self._workers:
                self._workers[name] = self._start(name, settings)

    def _resume(self) -> None:
        resumed = [status.resume(time.time()) for status in self.status.values()]
        if any(resumed):
            self.journal.announce()

    def _start(self, name: str, settings: SinkSettings) -> Worker:
        status = SinkStatus(settings.type, settings.required, since=time.time())
        self.status[name] = status
        plugin = traced_sink(find_sink(settings.type), name, self.tracing)
        dispatcher = Dispatcher(name, plugin, settings, self.place, self.journal, status, self.vote)
        work = supervise(f"sink.{name}", dispatcher.run)
        return Worker(dispatcher, self.group.create_task(work, name=f"sink.{name}"))

    async def _remove(self, name: str) -> None:
        worker = self._workers.pop(name)
        await worker.dispatcher.between_batches()
        await _end(worker.task)
        del self.status[name]

    async def drain(self, grace: float) -> int:
        """Give the sinks *grace* seconds to drain; return how many deliveries are left."""
        with suppress(TimeoutError):
            async with asyncio.timeout(grace), asyncio.TaskGroup() as draining:
                for worker in self._workers.values():
                    draining.create_task(worker.dispatcher.drained())
        return sum((await self.waiting()).values())

    async def waiting(self) -> dict[str, int]:
        """How many deliveries each sink has left; sinks with none are left out."""
        names = list(self._workers)
        found = await self.journal.run(lambda store: {one: backlog(store, one) for one in names})
        return {name: one.waiting for name, one in found.items() if one.waiting}

    async def stop(self) -> None:
        for worker in self._workers.values():
            worker.task.cancel()
        await asyncio.gather(*(w.task for w in self._workers.values()), return_exceptions=True)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
