"""The checks before each request: none on the control socket, all on HTTP, few for probes."""

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from typing import get_args

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bridge.config import Listen
from bridge.config.models import Scope
from bridge.config.values import PublicUrl
from bridge.platform import peer_user
from bridge.runtime.runtime import CALLER_ADDRESS
from bridge.web.access.authentication import Authenticator
from bridge.web.access.proxies import FORWARDED_FOR, caller_address
from bridge.web.access.tokens import (
    ANONYMOUS,
    SAFE_METHODS,
    Caller,
    host_is_ours,
    origin_is_ours,
)
from bridge.web.console.pages import is_page
from bridge.web.problems import ProblemDetails

CALLER: ContextVar[Caller] = ContextVar("caller")
"""The caller of the current request."""

_EVERYTHING: frozenset[Scope] = frozenset(get_args(Scope))
_BODY_PATIENCE = 10.0
_UNLESS_GIVEN = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
_HEADERS = {
    "Referrer-Policy": "no-referrer",
    "Server": "scheduled-events-bridge",
    "X-Content-Type-Options": "nosniff",
}


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)
    for name, value in _UNLESS_GIVEN.items():
        response.headers.setdefault(name, value)


def control_guard() -> Middleware:
    """A process that can open the socket may do everything."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        CALLER_ADDRESS.set(None)
        CALLER.set(Caller(_peer(request), "control", _EVERYTHING, by="control"))
        await _read_body(request)
        return await handler(request)

    return guard


def probes_guard(listen: Listen) -> Middleware:
    """Anyone may call the probes."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        _check_host(request, listen)
        return await handler(request)

    return guard


def http_guard(authenticator: Authenticator, listen: Listen) -> Middleware:
    """Tokens and certificates decide; without either, anyone on this machine may read."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        http = authenticator.context.runtime.config.http
        _check_host(request, listen, http.public_url)
        _check_origin(request, http.public_url)
        forwarded = request.headers.getall(FORWARDED_FOR, [])
        CALLER_ADDRESS.set(caller_address(request.remote, forwarded, http.trusted_proxies))
        page = is_page(request.method, request.path)
        CALLER.set(ANONYMOUS if page else await authenticator.admit(request))
        await _read_body(request)
        return await handler(request)

    return guard


def _check_host(request: web.Request, listen: Listen, public: Sequence[PublicUrl] = ()) -> None:
    if not host_is_ours(request.headers.getall("Host", []), listen, public):
        names = " or ".join(map(str, (listen, *public)))
        raise ProblemDetails(421, f"The Host header names another server; use {names}.")


def _check_origin(request: web.Request, public: Sequence[PublicUrl]) -> None:
    if request.method in SAFE_METHODS:
        return
    hosts, origin = request.headers.getall("Host", []), request.headers.get("Origin")
    if not origin_is_ours(origin, request.scheme, hosts, public):
        raise ProblemDetails(403, "A page from another origin may not do this.")


async def _read_body(request: web.Request) -> None:
    """Read the body, so that every path refuses one that is too large or never ends."""
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
    """The user at the other end of the control socket, if the system reports it."""
    end = request.get_extra_info("socket")
    user = None if end is None else peer_user(end)
    return "local" if user is None else f"uid {user}"
