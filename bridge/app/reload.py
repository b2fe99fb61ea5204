"""Puts a new configuration into effect: all of it or nothing."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from bridge import platform
from bridge.app.engine import Engine
from bridge.config import Config, ConfigError, fingerprint
from bridge.config.contradictions import without_operate
from bridge.runtime.runtime import Runtime

log = logging.getLogger(__name__)

Load = Callable[[], Config]


class CannotStart(Exception):
    """Something in the configuration is not available on this machine now."""


@dataclass(slots=True)
class WebAccess:
    """The listeners of HTTP and of the control socket, reopened when the configuration changes."""

    runtime: Runtime
    state_dir: Path
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _opened: tuple[object, ...] = ()

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def open(self) -> None:
        """Open the configured listeners; raises `CannotStart`."""
        # Imported here, so that the first poll does not wait for a web server.
        from bridge.runtime.http_address import address_of, remove_address, write_address  # noqa: PLC0415  after the first poll
        from bridge.web import CannotListen, serve  # noqa: PLC0415  after the first poll

        self._opened = _listeners(self.runtime.config)
        try:
            address = platform.control_address(self.state_dir)
            served = await self._stack.enter_async_context(serve(self.runtime, address=address))
        except (CannotListen, PermissionError) as error:
            raise CannotStart(str(error)) from error
        self._stack.callback(remove_address, self.state_dir)
        remove_address(self.state_dir)
        if served.http is not None:
            tls = self.runtime.config.http.tls
            write_address(self.state_dir, address_of(served.http, tls.certificate if tls else None))

    async def configure(self, new: Config) -> None:
        """Switch to *new*, or raise `CannotStart` and continue as before.

        Tokens are looked up at each request; addresses and certificates need new listeners. Files
        are checked before anything is closed. Until the listeners are open, nothing else of *new*
        is in force: what fails must not have decided anything.
        """
        old = self.runtime.config
        if self._opened == _listeners(new):
            self.runtime.configure(new)
            return
        _check_files(new)
        served = {"http": new.http, "control_group": new.control_group}
        self.runtime.configure(old.model_copy(update=served))
        await self._stack.aclose()
        try:
            await self.open()
        except CannotStart:
            self.runtime.configure(old)
            await self.open()
            raise
        self.runtime.configure(new)


@dataclass(slots=True)
class Reload:
    """Reads the file again on request; *load* raises `ConfigError`."""

    runtime: Runtime
    engine: Engine
    web: WebAccess
    load: Load

    async def run(self, asked: asyncio.Event) -> None:
        """Reload whenever *asked* is set; never returns."""
        while True:
            await asked.wait()
            asked.clear()
            platform.notify("RELOADING=1")
            try:
                await self.apply()
            finally:
                platform.notify("READY=1")

    async def apply(self) -> None:
        """Apply all or nothing: an invalid file, or one that needs a restart, changes nothing."""
        old = self.runtime.config
        try:
            new = await asyncio.to_thread(self.load)
            _needs_no_restart(old, new)
            await self.web.configure(new)
        except (ConfigError, CannotStart) as error:
            self.runtime.status.reloads_failed += 1
            self.runtime.status.reload_rejected = True
            log.error("configuration.rejected", extra={"error": str(error)})  # noqa: TRY400  the sentence is enough
            return
        self.runtime.status.reload_rejected = False
        await self.engine.configure_sinks()
        await self.engine.configure_sources()
        await self.engine.configure_traces()
        if old.source != new.source:
            await self.engine.restart_poller()
        log.info("configuration.loaded", extra={"config": str(new.file)})
        await audit_configuration(self.runtime, "reload")


async def audit_configuration(runtime: Runtime, why: str) -> None:
    """Publish which configuration is in force, as a hash and in its main points."""
    config = runtime.config
    runtime.status.configured = runtime.clock.monotonic()
    for token in without_operate(config.http):
        level = logging.INFO if "scopes" in token.model_fields_set else logging.WARNING
        log.log(level, "http.token_cannot_operate", extra={"token": token.name})
    detail = {
        "sha256": fingerprint(config),
        "file": str(config.file) if config.file else None,
        "sinks": sorted(config.sinks),
        "approvals": {
            "from": sorted(config.approvals.sources),
            "require": str(config.approvals.require),
            "dryRun": config.approvals.dry_run,
        },
        "tokens": {token.name: list(token.scopes) for token in config.http.tokens},
        "why": why,
    }
    await runtime.audit("configuration.loaded", actor="bridge", via="file", detail=detail)


def _listeners(config: Config) -> tuple[object, ...]:
    http = config.http
    stamps = http.tls.stamps() if http.tls else ()
    limits = (http.max_connections, config.control_group)
    return (http.listen, http.probes_listen, http.tls, stamps, *limits)


def _check_files(config: Config) -> None:
    from bridge.web import CannotListen, check_tls  # noqa: PLC0415  as in WebAccess.open

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
