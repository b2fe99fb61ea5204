"""The simulator as one context manager: a world, the task that advances it, a port per VM."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from bridge.simulator.endpoint.control_api import Control, explain
from bridge.simulator.endpoint.server import ServerView
from bridge.simulator.world.building_blocks import VM
from bridge.simulator.world.scenario import Scenario, load
from bridge.simulator.world.script import Script, rehearse
from bridge.simulator.world.truth import Record, Truth
from bridge.simulator.world.world import World

HOST = "127.0.0.1"


class Simulator:
    """The metadata service on loopback: `async with Simulator("reboot", speed=60) as simulator`.

    Without a scenario, the world is quiet: one VM and nothing planned. The first VM listens on
    *port*, the others on the next ports, or on free ports if those are taken; 0 means free ports.
    Raises `Unusable` for a scenario that cannot be played, and OSError for a port that is taken.
    """

    def __init__(
        self,
        scenario: Scenario | str | Path | None = None,
        *,
        speed: float = 1.0,
        port: int = 0,
        seed: int = 0,
        truth: Path | None = None,
        tell: Callable[[Record], object] | None = None,
    ) -> None:
        if isinstance(scenario, str | Path):
            scenario = load(scenario)
        self.scenario = scenario or Scenario()
        if speed <= 0:
            raise ValueError(f"the speed must be greater than 0, not {speed}")
        rehearse(self.scenario)
        self.endpoints: dict[str, str] = {}
        self.world = World(self.scenario, speed=speed, seed=seed)
        self._port = port
        self._truth = (truth, tell)
        self._script = Script(self.world)
        self._wake = asyncio.Event()
        self._script_ended = asyncio.Event()
        self._over = asyncio.Event()
        self._stack = AsyncExitStack()
        self._living: asyncio.Task[None]

    @property
    def endpoint(self) -> str:
        """The endpoint of the first VM."""
        return self.endpoints[self.scenario.vms[0].name]

    @property
    def truth(self) -> list[Record]:
        """What has really happened so far, oldest first."""
        return self.world.truth.records

    async def script_done(self) -> None:
        """Return when the last step of the script is done."""
        await self._until(self._script_ended)

    async def done(self) -> None:
        """Return when the script has ended and no scheduled event is left."""
        while not self._is_over():
            self._over.clear()
            await self._until(self._over)

    async def failed(self) -> None:
        """Wait forever, or raise what stopped the world, such as a truth file on a full disk."""
        await self._until(asyncio.Event())

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            path, tell = self._truth
            self.world.truth = Truth(path, tell=tell)
            stack.callback(self.world.truth.close)
            for number, vm in enumerate(self.scenario.vms):
                self.endpoints[vm.name] = await self._serve(stack, vm, number)
            self.world.changed = self._wake.set
            self._script.begin()
            self._living = asyncio.create_task(self._live(), name="simulator")
            stack.push_async_callback(_stop, self._living)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def _until(self, event: asyncio.Event) -> None:
        waiting = asyncio.create_task(event.wait())
        try:
            await asyncio.wait({waiting, self._living}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if not event.is_set():
            self._living.result()

    async def _serve(self, stack: AsyncExitStack, vm: VM, number: int) -> str:
        app = web.Application(middlewares=[explain])
        app.add_routes(Control(self.world, self._state).routes())
        app.router.add_route("*", "/{path:.*}", ServerView(self.world, vm).handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        port = self._port + number if self._port else 0
        try:
            await web.TCPSite(runner, HOST, port).start()
        except OSError:
            if number == 0:
                raise
            await web.TCPSite(runner, HOST, 0).start()
        return f"http://{HOST}:{runner.addresses[0][1]}"

    def _state(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario.name,
            "speed": self.world.speed,
            "seed": self.world.seed,
            "vms": self.endpoints,
            "scriptDone": self._script.ended,
            "done": self._is_over(),
        }

    def _is_over(self) -> bool:
        return self._script.ended and not self.world.entries

    async def _live(self) -> None:
        """Advance the world when something is due, and check again whenever it changes."""
        while True:
            self._wake.clear()
            self.world.advance()
            if self._script.ended:
                self._script_ended.set()
            if self._is_over():
                self._over.set()
            due = self.world.agenda.next()
            wait = None if due is None else (due - self.world.clock()).total_seconds()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
