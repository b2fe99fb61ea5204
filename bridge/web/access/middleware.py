"""The checks before each request: none at the control socket, all over HTTP, few for probes."""

import asyncio
from contextvars import ContextVar

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bridge.config import Listen
from bridge.config.models import Scope
from bridge.platform import peer_user
from bridge.web.access.authentication import Authenticator
from bridge.web.access.tokens import SAFE_METHODS, Caller, host_is_ours, origin_is_ours
from bridge.web.context import WebContext
from bridge.web.problems import ProblemDetails

CALLER: ContextVar[Caller] = ContextVar("caller")
"""Who makes the request that is being handled."""

_EVERYTHING: frozenset[Scope] = frozenset({"read", "approve"})
_BODY_PATIENCE = 10.0
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Server": "scheduled-events-bridge",
    "X-Content-Type-Options": "nosniff",
}


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)


def control_guard() -> Middleware:
    """Whoever may open the socket may do everything."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        CALLER.set(Caller(_peer(request), "control", _EVERYTHING))
        await _read_body(request)
        return await handler(request)

    return guard


def probes_guard(listen: Listen) -> Middleware:
    """Anybody may ask how the bridge is."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        _check_host(request, listen)
        return await handler(request)

    return guard


def http_guard(context: WebContext, listen: Listen) -> Middleware:
    """Tokens and certificates decide; without either, anybody on this machine may read."""
    authenticator = Authenticator(context)

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        _check_host(request, listen)
        _check_origin(request)
        CALLER.set(await authenticator.admit(request))
        await _read_body(request)
        return await handler(request)

    return guard


def _check_host(request: web.Request, listen: Listen) -> None:
    if not host_is_ours(request.headers.getall("Host", []), listen):
        raise ProblemDetails(421, f"The Host header names another server; ask for {listen}.")


def _check_origin(request: web.Request) -> None:
    hosts = request.headers.getall("Host", [])
    origin = request.headers.get("Origin")
    if request.method not in SAFE_METHODS and not origin_is_ours(origin, request.scheme, hosts):
        raise ProblemDetails(403, "A page of another origin may not do this.")


async def _read_body(request: web.Request) -> None:
    """Take the body in, so that one that is too large or never ends is refused by all paths."""
    if request.method in SAFE_METHODS:
        return
    if (request.content_length or 0) > request.client_max_size:
        raise web.HTTPRequestEntityTooLarge(request.client_max_size, request.content_length or 0)
    try:
        async with asyncio.timeout(_BODY_PATIENCE):
            await request.read()
    except TimeoutError:
        raise ProblemDetails(408, "The body did not arrive in time.") from None


def _peer(request: web.Request) -> str:
    """Who is at the other end of the control socket, where the system tells."""
    end = request.get_extra_info("socket")
    user = None if end is None else peer_user(end)
    return "local" if user is None else f"uid {user}"
