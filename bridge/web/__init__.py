"""The bridge over HTTP: control socket, API and stream, probes and metrics.

Read access (who may), api and stream (what there is), health and metrics (how it is), then this.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from bridge.config import Http, Listen
from bridge.platform import serve_control
from bridge.runtime import Runtime
from bridge.web import api, approvals, drills, probes
from bridge.web.desk import Desk
from bridge.web.guards import control_guard, http_guard, probes_guard
from bridge.web.listen import CannotListen, listen, runner, tls_context

__all__ = ["CannotListen", "Served", "check_tls", "serve"]

log = logging.getLogger(__name__)

_ROUTES = (probes.routes, api.routes, approvals.routes, drills.routes)


@dataclass(frozen=True, slots=True)
class Served:
    """Where the bridge can be reached; None where it cannot."""

    control: str | None = None
    http: Listen | None = None
    probes: Listen | None = None

    def as_fields(self) -> dict[str, str | None]:
        places = (self.http and str(self.http), self.probes and str(self.probes))
        return {"control": self.control, "http": places[0], "probes": places[1]}


@asynccontextmanager
async def serve(runtime: Runtime, *, address: str | None) -> AsyncGenerator[Served]:
    """Serve the control socket at *address*, `http.listen` and `http.probes_listen`.

    Raises `CannotListen` when a configured address cannot be had, and `AlreadyRunning` when a
    bridge answers at the control socket. The journal must be open until this ends.
    """
    desk = Desk(runtime)
    async with AsyncExitStack() as stack:
        served = Served(
            control=await _control(stack, desk, address),
            http=await _http(stack, desk),
            probes=await _probes(stack, desk),
        )
        log.info("http.serves", extra=served.as_fields())
        stack.callback(desk.streams.close)
        yield served


def check_tls(http: Http) -> None:
    """Raises `CannotListen` when the files of `http.tls` cannot be used."""
    if http.listen is not None:
        tls_context(http.tls)


async def _control(stack: AsyncExitStack, desk: Desk, address: str | None) -> str | None:
    """A directory that cannot be written is no reason to stop: events still must go out."""
    if address is None:
        return None
    made = await runner(desk, control_guard(), _ROUTES)
    stack.push_async_callback(made.cleanup)
    try:
        await serve_control(made, address, desk.runtime.config.control_group)
    except OSError as error:
        log.warning("control.unavailable", extra={"address": address, "error": str(error)})
        return None
    return address


async def _http(stack: AsyncExitStack, desk: Desk) -> Listen | None:
    http = desk.runtime.config.http
    if http.listen is None:
        return None
    tls = tls_context(http.tls)
    made = await runner(desk, http_guard(desk, http.listen), _ROUTES)
    stack.push_async_callback(made.cleanup)
    try:
        return await listen(made, "http.listen", http.listen, tls)
    except CannotListen as error:
        if not http.listen_is_default:
            raise
        log.warning("http.unavailable", extra={"error": str(error)})
        return None


async def _probes(stack: AsyncExitStack, desk: Desk) -> Listen | None:
    at = desk.runtime.config.http.probes_listen
    if at is None:
        return None
    made = await runner(desk, probes_guard(at), (probes.routes,))
    stack.push_async_callback(made.cleanup)
    return await listen(made, "http.probes_listen", at, None)
