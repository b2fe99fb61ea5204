"""The composition root: builds the parts, runs them in one TaskGroup, and stops them in order."""

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from bridge import platform
from bridge.app.engine import Engine
from bridge.app.housekeeping import keep_house, keep_watchdog, tidy
from bridge.common.supervise import heard, supervise
from bridge.config import Config, ConfigError, fingerprint
from bridge.journal import Journal
from bridge.runtime.identity import Identity
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import Status

log = logging.getLogger(__name__)

Load = Callable[[], Config]

HEAD_START = 1.0


class CannotStart(Exception):
    """Something that the configuration asks for cannot be had on this machine now."""


async def run(config: Config, load: Load, *, once: bool = False) -> int:
    """Run the bridge until it is told to stop; the exit code. *load* reads the file again."""
    state_dir = config.state_dir or platform.default_state_dir()
    name = str(config.file or "built-in defaults")
    log.info("bridge.starting", extra={"config": name, "state_dir": str(state_dir)})
    with _locked(state_dir):
        journal = Journal(state_dir / "journal.db")
        await journal.open()
        if platform.open_to_others(journal.path):
            log.warning("journal.open_to_others", extra={"path": str(journal.path)})
        try:
            app = App(_runtime(config, journal), load, state_dir)
            return await (app.once() if once else app.serve())
        finally:
            await journal.close()


@contextmanager
def _locked(state_dir: Path) -> Generator[None]:
    """One process per state directory; one that cannot be written holds nothing to fight over."""
    with ExitStack() as stack:
        try:
            stack.enter_context(platform.lock(state_dir))
        except OSError as error:
            log.error("state_dir.unwritable", extra={"path": str(state_dir), "error": str(error)})  # noqa: TRY400  no traceback for the operator
        yield


def _runtime(config: Config, journal: Journal) -> Runtime:
    return Runtime(
        config=config,
        journal=journal,
        identity=Identity(config, journal),
        status=Status(started=time.monotonic()),
        version=version("scheduled-events-bridge"),
        boot_id=platform.boot_id(),
    )


@dataclass(slots=True)
class App:
    """One bridge. The order of starting is for speed, the order of stopping for safety."""

    runtime: Runtime
    load: Load
    state_dir: Path
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _again: asyncio.Event = field(default_factory=asyncio.Event)
    _opened: tuple[object, ...] = ()

    async def once(self) -> int:
        """Poll one time, drain, and leave; 1 when there was no answer or something is left."""
        await self.runtime.identity.recall()
        async with asyncio.TaskGroup() as group:
            engine = Engine(self.runtime, group)
            await engine.employ()
            await tidy(self.runtime)
            good = await engine.once()
            left = await engine.stop(self.runtime.config.stop_grace)
        if left:
            log.warning("bridge.undelivered", extra={"left": left})
        return 0 if good and not left else 1

    async def serve(self) -> int:
        """Run until a signal says stop."""
        with platform.signals(self._stop.set, self._again.set):
            async with asyncio.TaskGroup() as group, AsyncExitStack() as web:
                await self.runtime.identity.recall()
                engine = Engine(self.runtime, group)
                await self._head_start(engine)
                _sweep()
                await engine.listen()
                helpers = self._helpers(group, engine, web)
                await self._open_web(web)
                await self._audit_config("start")
                platform.notify("READY=1")
                await self._stop.wait()
                platform.notify("STOPPING=1")
                await self._leave(engine, helpers)
        return 0

    async def _head_start(self, engine: Engine) -> None:
        """Let the first poll, and what it brings, go ahead; its answer may take minutes."""
        await engine.start(HEAD_START)
        with self.runtime.journal.news() as news:
            if await heard(news, HEAD_START):
                await engine.fleet.drain(HEAD_START)

    def _helpers(
        self, group: asyncio.TaskGroup, engine: Engine, web: AsyncExitStack
    ) -> list[asyncio.Task[None]]:
        reloads = supervise("reload", lambda: self._reloads(engine, web))
        house = supervise("housekeeping", lambda: keep_house(self.runtime), first=5.0)
        return [
            group.create_task(reloads, name="reload"),
            group.create_task(house, name="housekeeping"),
            group.create_task(keep_watchdog(self.runtime), name="watchdog"),
        ]

    async def _leave(self, engine: Engine, helpers: list[asyncio.Task[None]]) -> None:
        log.info("bridge.stopping", extra={"grace": self.runtime.config.stop_grace})
        for task in helpers:
            task.cancel()
        left = await engine.stop(self.runtime.config.stop_grace)
        log.info("bridge.stopped", extra={"undelivered": left})

    async def _open_web(self, stack: AsyncExitStack) -> None:
        # Imported here: the first poll need not wait for a web server.
        from bridge.web import CannotListen, serve  # noqa: PLC0415

        self._opened = _listeners(self.runtime.config)
        try:
            address = platform.control_address(self.state_dir)
            await stack.enter_async_context(serve(self.runtime, address=address))
        except (CannotListen, PermissionError) as error:
            raise CannotStart(str(error)) from error

    async def _audit_config(self, why: str) -> None:
        config = self.runtime.config
        detail = {
            "sha256": fingerprint(config),
            "file": str(config.file) if config.file else None,
            "sinks": sorted(config.sinks),
            "approvals": {
                "from": sorted(config.approvals.sources),
                "require": str(config.approvals.require),
                "dryRun": config.approvals.dry_run,
            },
            "why": why,
        }
        await self.runtime.audit("configuration.loaded", actor="bridge", via="file", detail=detail)

    async def _reloads(self, engine: Engine, web: AsyncExitStack) -> None:
        while True:
            await self._again.wait()
            self._again.clear()
            platform.notify("RELOADING=1")
            try:
                await self._change(engine, web)
            finally:
                platform.notify("READY=1")

    async def _change(self, engine: Engine, web: AsyncExitStack) -> None:
        """All or nothing: a file that is bad, or that needs a restart, changes nothing."""
        old = self.runtime.config
        try:
            new = await asyncio.to_thread(self.load)
            _needs_no_restart(old, new)
            await self._exchange_web(old, new, web)
        except (ConfigError, CannotStart) as error:
            self.runtime.status.reloads_failed += 1
            log.error("configuration.refused", extra={"error": str(error)})  # noqa: TRY400  the sentence is enough
            return
        self.runtime.identity.config = new
        await engine.change(old, new)
        log.info("configuration.loaded", extra={"config": str(new.file)})
        await self._audit_config("reload")

    async def _exchange_web(self, old: Config, new: Config, web: AsyncExitStack) -> None:
        """Tokens are looked up at each request; addresses and certificates need new listeners.

        Files that cannot be used are found before anything is closed.
        """
        if self._opened == _listeners(new):
            self.runtime.config = new
            return
        _check_files(new)
        self.runtime.config = new
        await web.aclose()
        try:
            await self._open_web(web)
        except CannotStart:
            self.runtime.config = old
            await self._open_web(web)
            raise


def _sweep() -> None:
    """Let go of what the start left behind, which `cli` did not stop to look for."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _listeners(config: Config) -> tuple[object, ...]:
    http = config.http
    stamps = http.tls.stamps() if http.tls else ()
    return (http.listen, http.probes_listen, http.tls, stamps, config.control_group)


def _check_files(config: Config) -> None:
    from bridge.web import CannotListen, check_tls  # noqa: PLC0415  as in _open_web

    try:
        check_tls(config.http)
    except CannotListen as error:
        raise CannotStart(str(error)) from error


def _needs_no_restart(old: Config, new: Config) -> None:
    for name, before, after in (
        ("state_dir", old.state_dir, new.state_dir),
        ("source.endpoint", old.source.endpoint, new.source.endpoint),
        ("source.vm_name", old.source.vm_name, new.source.vm_name),
    ):
        if before != after:
            raise ConfigError([f"{name}: changed from {before} to {after}, which needs a restart"])
