"""Serves a bridge: on the control socket, over HTTP with or without TLS, and the probes."""

import logging
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Middleware

from bridge.config import HttpSettings, Listen, ServerTLS
from bridge.platform import open_files, serve_control
from bridge.runtime.runtime import Runtime
from bridge.web import probes
from bridge.web.access.authentication import AUTHENTICATOR, Authenticator
from bridge.web.access.connections import Connections, LimitedSite, listen
from bridge.web.access.middleware import add_headers, control_guard, http_guard, probes_guard
from bridge.web.access.sessions import Sessions
from bridge.web.api import approvals, drills, events, log_in, sinks, status
from bridge.web.console import pages
from bridge.web.context import CONTEXT, WebContext
from bridge.web.problems import problems
from bridge.web.stream import Streams

log = logging.getLogger(__name__)

LARGEST_BODY = 64 * 1024
CONTROL_CONNECTIONS = 32
NOT_FOR_STREAMS = 32
_SHUTDOWN = 1.0
_ROUTES = (
    pages.routes,
    probes.routes,
    log_in.routes,
    status.routes,
    events.routes,
    sinks.routes,
    approvals.routes,
    drills.routes,
)


class CannotListen(OSError):
    """A configured address cannot be served; the message says why."""


@dataclass(frozen=True, slots=True)
class Served:
    """The addresses of the bridge; None where it is not served."""

    control: str | None = None
    http: Listen | None = None
    probes: Listen | None = None

    def as_fields(self) -> dict[str, str | None]:
        places = (self.http and str(self.http), self.probes and str(self.probes))
        return {"control": self.control, "http": places[0], "probes": places[1]}


@asynccontextmanager
async def serve(
    runtime: Runtime, *, address: str | None, sessions: Sessions | None = None
) -> AsyncGenerator[Served]:
    """Serve the control socket at *address*, `http.listen` and `http.probes_listen`.

    Pass the same *sessions* again, and nobody has to log in again.

    Raises `CannotListen` if a configured address is not available, and `AlreadyRunning` if a
    bridge answers at the control socket. The journal must be open until this ends.
    """
    kept = Sessions(runtime.clock) if sessions is None else sessions
    context = WebContext(runtime, sessions=kept, streams=_streams(runtime.config.http))
    async with AsyncExitStack() as stack:
        served = Served(
            control=await _control(stack, context, address),
            http=await _http(stack, context),
            probes=await _probes(stack, context),
        )
        log.info("http.listening", extra=served.as_fields())
        stack.callback(context.streams.close)
        yield served


def _streams(http: HttpSettings) -> Streams:
    """Streams stay open, so some connections are left for everything else."""
    return Streams(max(1, http.max_connections - NOT_FOR_STREAMS))


def check_tls(http: HttpSettings) -> None:
    """Raise `CannotListen` if the files of `http.tls` cannot be used."""
    if http.listen is not None:
        server_context(http.tls)


async def _control(stack: AsyncExitStack, context: WebContext, address: str | None) -> str | None:
    """Serve the control socket. Without a writable directory, continue: events must go out."""
    if address is None:
        return None
    places = _places("control", CONTROL_CONNECTIONS)
    made = await _runner(context, places, control_guard(), _ROUTES)
    stack.push_async_callback(made.cleanup)

    def site(_: web.AppRunner, sock: socket.socket, stopped: Callable[[], None]) -> LimitedSite:
        return LimitedSite(made, [sock], places, stopped=stopped)

    try:
        await serve_control(made, address, context.runtime.config.control_group, site)
    except OSError as error:
        log.warning("control.unavailable", extra={"address": address, "error": str(error)})
        return None
    return address


async def _http(stack: AsyncExitStack, context: WebContext) -> Listen | None:
    http = context.runtime.config.http
    if http.listen is None:
        return None
    tls = server_context(http.tls)
    places = _places("http.listen", http.max_connections)
    authenticator = Authenticator(context)
    made = await _runner(
        context, places, http_guard(authenticator, http.listen), _ROUTES, authenticator
    )
    stack.push_async_callback(made.cleanup)
    try:
        served = await _listen(made, places, http.listen, tls)
    except CannotListen as error:
        if not http.listen_is_default:
            raise
        log.warning("http.unavailable", extra={"error": str(error)})
        return None
    context.url = f"{'https' if tls else 'http'}://{served.on_this_machine}/"
    return served


async def _probes(stack: AsyncExitStack, context: WebContext) -> Listen | None:
    http = context.runtime.config.http
    if http.probes_listen is None:
        return None
    places = _places("http.probes_listen", http.max_connections)
    made = await _runner(context, places, probes_guard(http.probes_listen), (probes.routes,))
    stack.push_async_callback(made.cleanup)
    return await _listen(made, places, http.probes_listen, None)


def _places(listener: str, most: int) -> Connections:
    """At most a quarter of all files that this process may open: the sinks need some too."""
    return Connections(listener, min(most, open_files() // 4))


class _Quiet(logging.Filter):
    """Keeps bad requests and dropped connections out of the log: anyone can cause them.

    A request that is not HTTP still gets a 400. aiohttp fails before any of our code runs when it
    quotes an `Expect` header that is not text.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        found = record.exc_info[1] if record.exc_info else None
        return not isinstance(found, HttpProcessingError | ConnectionError | UnicodeEncodeError)


_wire = logging.getLogger(f"{__name__}.wire")
_wire.addFilter(_Quiet())


async def _runner(
    context: WebContext,
    places: Connections,
    guard: Middleware,
    tables: Iterable[web.RouteTableDef],
    authenticator: Authenticator | None = None,
) -> web.AppRunner:
    """An application behind *guard*, set up but not served yet."""
    before = [places.middleware(), problems, guard]
    app = web.Application(middlewares=before, client_max_size=LARGEST_BODY)
    app[CONTEXT] = context
    if authenticator is not None:
        app[AUTHENTICATOR] = authenticator
    app.on_response_prepare.append(add_headers)
    for table in tables:
        app.add_routes(table)
    made = web.AppRunner(
        app,
        access_log=None,
        logger=_wire,
        shutdown_timeout=_SHUTDOWN,
        keepalive_timeout=75.0,
        auto_decompress=False,
    )
    await made.setup()
    return made


async def _listen(
    made: web.AppRunner, places: Connections, at: Listen, tls: ssl.SSLContext | None
) -> Listen:
    """Serve at *at* and return the actual address and port."""
    try:
        sockets = await listen(at.host, at.port)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise CannotListen(f"{places.listener}: cannot listen on {at}: {why}") from error
    await LimitedSite(made, sockets, places, tls=tls).start()
    return Listen(at.host, sockets[0].getsockname()[1])


def server_context(tls: ServerTLS | None) -> ssl.SSLContext | None:
    """The TLS of the listeners, or None. Raises `CannotListen` when a file cannot be used."""
    if tls is None:
        return None
    # Not create_default_context: it writes session keys to the file in SSLKEYLOGFILE.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # A key with a passphrase would make OpenSSL ask for it on the terminal.
        context.load_cert_chain(tls.certificate, tls.key, password=_no_passphrase)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        place = f"{tls.certificate} with {tls.key}"
        raise CannotListen(f"http.tls: {place} cannot be used: {why}") from error
    if tls.client_ca is not None:
        _ask_clients(context, tls.client_ca, must=tls.client_certificates == "required")
    return context


def _ask_clients(context: ssl.SSLContext, ca: Path, *, must: bool) -> None:
    """Trust certificates signed by these authorities, but not by the authorities above them."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(ca)
    except OSError as error:
        named = not isinstance(error, ssl.SSLError) and error.strerror
        why = named or "it does not contain a PEM certificate"
        raise CannotListen(f"http.tls.client_ca: {ca} cannot be used: {why}") from error
    context.verify_mode = ssl.CERT_REQUIRED if must else ssl.CERT_OPTIONAL


def _no_passphrase() -> str:
    raise ValueError("the key has a passphrase; use a key without one")
