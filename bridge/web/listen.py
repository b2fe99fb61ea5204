"""Addresses to serve at: TCP with or without TLS, and what to do when one cannot be had."""

import logging
import os
import ssl
from collections.abc import Iterable
from pathlib import Path

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Middleware

from bridge.config import Listen, ServerTLS
from bridge.web.desk import DESK, Desk
from bridge.web.guards import add_headers
from bridge.web.problems import problems

LARGEST_BODY = 64 * 1024
_SHUTDOWN = 1.0


class CannotListen(OSError):
    """An address that the configuration asks for cannot be served; the sentence says why."""


class _Quiet(logging.Filter):
    """What is not HTTP is answered with 400, and who hangs up with nothing; anybody can do that.

    So neither is a line in the log.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        found = record.exc_info[1] if record.exc_info else None
        return not isinstance(found, HttpProcessingError | ConnectionError)


_wire = logging.getLogger(f"{__name__}.wire")
_wire.addFilter(_Quiet())


async def runner(
    desk: Desk, guard: Middleware, tables: Iterable[web.RouteTableDef]
) -> web.AppRunner:
    """An application behind *guard*, set up and served nowhere yet."""
    app = web.Application(middlewares=[problems, guard], client_max_size=LARGEST_BODY)
    app[DESK] = desk
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


async def listen(made: web.AppRunner, key: str, at: Listen, tls: ssl.SSLContext | None) -> Listen:
    """Serve at *at*, and return the address with the port that it got; *key* is its place."""
    site = web.TCPSite(made, at.host, at.port, ssl_context=tls)
    try:
        await site.start()
    except OSError as error:
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise CannotListen(f"{key}: cannot listen on {at}: {why}") from error
    return Listen(at.host, site.port)


def tls_context(tls: ServerTLS | None) -> ssl.SSLContext | None:
    if tls is None:
        return None
    # Not create_default_context: that writes session keys to where SSLKEYLOGFILE says.
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
    """Believe what these authorities have signed, and not what those above them have."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(ca)
    except OSError as error:
        named = not isinstance(error, ssl.SSLError) and error.strerror
        why = named or "it holds no PEM certificate"
        raise CannotListen(f"http.tls.client_ca: {ca} cannot be used: {why}") from error
    context.verify_mode = ssl.CERT_REQUIRED if must else ssl.CERT_OPTIONAL


def _no_passphrase() -> str:
    raise ValueError("the key has a passphrase; use one without")
