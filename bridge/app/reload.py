"""Puts a new configuration into effect: all of it or nothing."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bridge import platform
from bridge.app.engine import Engine
from bridge.config import Config, ConfigError, changes, fingerprint
from bridge.config.contradictions import without_operate
from bridge.runtime.runtime import Runtime
from bridge.runtime.status import ReloadResult

if TYPE_CHECKING:
    from bridge.web import Sessions

log = logging.getLogger(__name__)

Load = Callable[[], Config]
_FAILED = ("the reload failed; the log says why",)


class CannotStart(Exception):
    """Something in the configuration is not available on this machine now."""


@dataclass(slots=True)
class WebAccess:
    """The listeners of HTTP and of the control socket, reopened when the configuration changes."""

    runtime: Runtime
    state_dir: Path
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _opened: tuple[object, ...] = ()
    _sessions: "Sessions | None" = None

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def open(self) -> None:
        """Open the configured listeners; raises `CannotStart`."""
        # Imported here, so that the first poll does not wait for a web server.
        from bridge.runtime.http_address import address_of, remove_address, write_address  # noqa: PLC0415  after the first poll
        from bridge.web import CannotListen, Sessions, serve  # noqa: PLC0415  after the first poll

        self._opened = _listeners(self.runtime.config)
        try:
            address = platform.control_address(self.state_dir)
            if self._sessions is None:
                self._sessions = Sessions(self.runtime.clock)
            opening = serve(self.runtime, address=address, sessions=self._sessions)
            served = await self._stack.enter_async_context(opening)
        except (CannotListen, PermissionError) as error:
            raise CannotStart(str(error)) from error
        self._stack.callback(remove_address, self.state_dir)
        remove_address(self.state_dir)
        if served.http is not None:
            tls = self.runtime.config.http.tls
            write_address(self.state_dir, address_of(served.http, tls.certificate if tls else None))

    def reopens_for(self, new: Config) -> bool:
        """Whether *new* needs other listeners; requests that are being answered are cut off."""
        return self._opened != _listeners(new)

    async def configure(self, new: Config) -> None:
        """Switch to *new*, or raise `CannotStart` and continue as before.

        Tokens are looked up at each request; addresses and certificates need new listeners. Files
        are checked before anything is closed. Until the listeners are open, nothing else of *new*
        is in force: what fails must not have decided anything.
        """
        old = self.runtime.config
        if not self.reopens_for(new):
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


@dataclass(frozen=True, slots=True)
class _Asked:
    """Who asks for a reload, and where to put the answer."""

    actor: str
    via: str
    answer: asyncio.Future[ReloadResult] | None = None

    @property
    def who(self) -> tuple[str, str]:
        return self.actor, self.via

    def tell(self, result: ReloadResult) -> None:
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(result)


_SIGNAL = _Asked("bridge", "file")


@dataclass(slots=True)
class Reload:
    """Reads the file again when *asked* is set; *load* raises `ConfigError`."""

    runtime: Runtime
    engine: Engine
    web: WebAccess
    load: Load
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    _callers: list[_Asked] = field(default_factory=list)

    async def request(self, actor: str, via: str) -> ReloadResult:
        """Reload for an operator, in the task that reloads on a signal too."""
        answer: asyncio.Future[ReloadResult] = asyncio.get_running_loop().create_future()
        self._callers.append(_Asked(actor, via, answer))
        self.asked.set()
        return await answer

    async def run(self) -> None:
        """Reload whenever it is asked for; never returns."""
        while True:
            await self.asked.wait()
            self.asked.clear()
            callers, self._callers = self._callers, []
            platform.notify("RELOADING=1")
            try:
                for caller in callers or [_SIGNAL]:
                    await self.apply(caller)
            finally:
                for caller in callers:
                    caller.tell(ReloadResult("rejected", time.time(), *caller.who, errors=_FAILED))
                platform.notify("READY=1")

    async def apply(self, caller: _Asked = _SIGNAL) -> None:
        """Apply all or nothing: an invalid file, or one that needs a restart, changes nothing."""
        old, who = self.runtime.config, caller.who
        try:
            new = await asyncio.to_thread(self.load)
            _needs_no_restart(old, new)
            changed = tuple(changes(old, new))
            if self.web.reopens_for(new):
                caller.tell(ReloadResult("reopening", time.time(), *who, changed))
            await self.web.configure(new)
        except (ConfigError, CannotStart) as error:
            self.runtime.status.reloads_failed += 1
            log.error("configuration.rejected", extra={"error": str(error)})  # noqa: TRY400  the sentence is enough
            errors = error.problems if isinstance(error, ConfigError) else [str(error)]
            done = ReloadResult("rejected", time.time(), *who, errors=tuple(errors))
        else:
            await self._effect(old, new)
            await audit_configuration(self.runtime, "reload", actor=caller.actor, via=caller.via)
            done = ReloadResult("applied", time.time(), *who, changed)
        self.runtime.status.reload = done
        caller.tell(done)

    async def _effect(self, old: Config, new: Config) -> None:
        await self.engine.configure_sinks()
        await self.engine.configure_sources()
        if old.source != new.source:
            await self.engine.restart_poller()
        log.info("configuration.loaded", extra={"config": str(new.file)})


async def audit_configuration(
    runtime: Runtime, why: str, *, actor: str = "bridge", via: str = "file"
) -> None:
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
    await runtime.audit("configuration.loaded", actor=actor, via=via, detail=detail)


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
