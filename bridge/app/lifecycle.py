"""The composition root: builds the parts, runs them in one TaskGroup, and stops them in order."""

import asyncio
import gc
import logging
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bridge import platform
from bridge.app.engine import Engine
from bridge.app.housekeeping import keep_watchdog, maintain, tidy
from bridge.app.reload import Load, Reload, WebAccess, audit_configuration
from bridge.common.supervise import heard, supervise
from bridge.config import Config
from bridge.journal import Journal
from bridge.runtime.identity import Identity
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import Status
from bridge.telemetry.tracing import Tracing

log = logging.getLogger(__name__)

HEAD_START = 1.0
DRAIN_REPORT = 2.0
"""Seconds between two lines about what is left while the bridge stops."""
MOST_FILES = 65536


async def run(config: Config, load: Load, *, once: bool = False) -> int:
    """Run the bridge until a signal; return the exit code. *load* reads the file again."""
    state_dir = config.state_dir or platform.default_state_dir()
    name = str(config.file or "built-in defaults")
    log.info("bridge.starting", extra={"config": name, "state_dir": str(state_dir)})
    platform.forbid_core_dumps()
    platform.raise_open_files(MOST_FILES)
    with _locked(state_dir):
        journal = Journal(state_dir / "journal.db", config.journal.newer)
        await journal.open()
        if platform.open_to_others(journal.path):
            log.warning("journal.permissions_too_open", extra={"path": str(journal.path)})
        try:
            app = App(_runtime(config, journal), load, state_dir)
            return await (app.once() if once else app.serve())
        finally:
            await journal.close()


@contextmanager
def _locked(state_dir: Path) -> Generator[None]:
    """Allow one process per state directory; a read-only directory needs no lock."""
    with ExitStack() as stack:
        try:
            stack.enter_context(platform.lock(state_dir))
        except OSError as error:
            log.error("state_dir.unwritable", extra={"path": str(state_dir), "error": str(error)})  # noqa: TRY400  no traceback for the operator
        yield


def _collect_garbage() -> None:
    """Free what only the start needed, such as the parser of options, which `cli` has frozen."""
    gc.unfreeze()
    gc.collect()


def _runtime(config: Config, journal: Journal) -> Runtime:
    return Runtime(
        config=config,
        journal=journal,
        identity=Identity(config, journal),
        status=Status(started=time.monotonic()),
        boot_id=platform.boot_id(),
        tracing=Tracing(on=config.telemetry.otlp is not None),
    )


@dataclass(slots=True)
class App:
    """One bridge. It starts in the fastest order, and stops in the safest."""

    runtime: Runtime
    load: Load
    state_dir: Path
    reload: Reload | None = None
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _again: asyncio.Event = field(default_factory=asyncio.Event)

    async def once(self) -> int:
        """Poll once, drain and exit; return 1 if there was no answer or something is left."""
        await self.runtime.identity.recall()
        async with asyncio.TaskGroup() as group:
            engine = Engine(self.runtime, group)
            await engine.configure_sinks()
            await tidy(self.runtime)
            good = await engine.once()
            left = await self._drained(engine)
        if left:
            log.warning("bridge.undelivered", extra={"left": left})
        return 0 if good and not left else 1

    async def serve(self) -> int:
        """Run until a signal arrives."""
        with platform.signals(self._stop.set, self._again.set):
            async with asyncio.TaskGroup() as group, WebAccess(self.runtime, self.state_dir) as web:
                await self.runtime.identity.recall()
                engine = Engine(self.runtime, group)
                await self._head_start(engine)
                _collect_garbage()
                await engine.listen()
                await engine.configure_traces()
                self.reload = Reload(self.runtime, engine, web, self.load, self._again)
                self.runtime.reload = self.reload.request
                helpers = self._helpers(group, self.reload)
                await web.open()
                await audit_configuration(self.runtime, "start")
                platform.notify("READY=1")
                await self._stop.wait()
                platform.notify("STOPPING=1")
                await self._leave(engine, helpers)
        return 0

    async def _head_start(self, engine: Engine) -> None:
        """Give the first poll and its deliveries a head start; its answer may take minutes."""
        await engine.start(HEAD_START)
        with self.runtime.journal.news() as news:
            if await heard(news, HEAD_START):
                await engine.workers.drain(HEAD_START)

    def _helpers(self, group: asyncio.TaskGroup, reload: Reload) -> list[asyncio.Task[None]]:
        reloads = supervise("reload", reload.run)
        house = supervise("housekeeping", lambda: maintain(self.runtime), first=5.0)
        return [
            group.create_task(reloads, name="reload"),
            group.create_task(house, name="housekeeping"),
            group.create_task(keep_watchdog(self.runtime), name="watchdog"),
        ]

    async def _leave(self, engine: Engine, helpers: list[asyncio.Task[None]]) -> None:
        log.info("bridge.stopping", extra={"grace": self.runtime.config.stop_grace})
        for task in helpers:
            task.cancel()
        left = await self._drained(engine)
        log.info("bridge.stopped", extra={"undelivered": left})

    async def _drained(self, engine: Engine) -> int:
        """Stop the engine, with lines about its progress; return how much was not delivered."""
        progress = asyncio.create_task(_report(engine))
        try:
            return await engine.stop(self.runtime.config.stop_grace)
        finally:
            progress.cancel()


async def _report(engine: Engine) -> None:
    """Log what the sinks have left to deliver, so that nobody kills a bridge that is busy."""
    while left := await engine.workers.waiting():
        log.info("bridge.draining", extra={"left": left})
        await asyncio.sleep(DRAIN_REPORT)
