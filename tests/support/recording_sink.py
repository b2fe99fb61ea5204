"""A sink that does what the test says: it accepts, refuses, breaks or hangs, and records it all."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from bridge.delivery.dispatcher import Dispatcher
from bridge.journal import Journal
from bridge.plugins import CloudEvent, Place, Result, Send, SinkPlugin, SinkSettings
from bridge.runtime.status import SinkStatus


class FakeSettings(SinkSettings):
    """It has a connection, unless the test says otherwise."""

    connected: bool

    @property
    def connects(self) -> bool:
        return self.connected


@dataclass
class RecordingSink:
    """`judge` returns the result for one CloudEvent; if it raises, the whole batch fails."""

    judge: Callable[[CloudEvent], Result | Awaitable[object]] = lambda _: None
    entering: Callable[[], Any] = lambda: None
    leaving: Callable[[], Any] = lambda: None
    answer: Callable[[list[Result]], Any] = lambda results: results
    pause: float = 0.0
    connects: bool = True
    batches: list[list[str]] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    entered: int = 0
    left: int = 0
    places: list[Place] = field(default_factory=list)

    @property
    def plugin(self) -> SinkPlugin[FakeSettings]:
        return SinkPlugin(FakeSettings, self.open)

    @contextlib.asynccontextmanager
    async def open(self, settings: FakeSettings, place: Place) -> AsyncGenerator[Send]:
        self.places.append(place)
        await asyncio.sleep(0)
        await _maybe(self.entering())
        self.entered += 1
        try:
            yield self.send
        finally:
            self.left += 1
            await _maybe(self.leaving())

    def was_left(self, times: int) -> bool:
        return self.left == times

    async def send(self, batch: Sequence[CloudEvent]) -> Sequence[Result]:
        keys = [event.key for event in batch]
        assert len(set(keys)) == len(keys), f"one key twice in {keys}"
        self.batches.append([event.id for event in batch])
        await asyncio.sleep(self.pause)
        results = [await _maybe(self.judge(event)) for event in batch]
        self.taken += [e.id for e, result in zip(batch, results, strict=True) if result is None]
        return self.answer(results)


async def _maybe(value: Any) -> Any:
    return await value if asyncio.iscoroutine(value) else value


def dispatcher_for(
    journal: Journal, recorder: RecordingSink, name: str = "sink", **settings: Any
) -> Dispatcher:
    return Dispatcher(
        name,
        recorder.plugin,
        FakeSettings.model_validate({"type": "fake", "connected": recorder.connects, **settings}),
        lambda: Place({"vm_name": "vm-0"}),
        journal,
        SinkStatus("fake", required=True),
    )


@contextlib.asynccontextmanager
async def at_work(*dispatchers: Dispatcher) -> AsyncGenerator[None]:
    """The dispatchers run; a failure in one of them fails the test."""
    tasks = [asyncio.create_task(each.run()) for each in dispatchers]
    try:
        yield
        for task in tasks:
            if task.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def fail(error: BaseException) -> NoReturn:
    raise error
