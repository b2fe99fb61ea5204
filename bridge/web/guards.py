"""The doors of the bridge: the control socket lets everything in, HTTP asks, probes are open."""

import asyncio
import logging
import time
from contextvars import ContextVar
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bridge.config import Listen
from bridge.platform import peer_user
from bridge.signatures import SIGNATURE
from bridge.web.access import (
    ANYBODY,
    SAFE_METHODS,
    Caller,
    Scope,
    bearer,
    host_is_ours,
    needed,
    origin_is_ours,
    who,
)
from bridge.web.desk import Desk
from bridge.web.problems import Problem

log = logging.getLogger(__name__)

CALLER: ContextVar[Caller] = ContextVar("caller")
"""Who makes the request that is being handled."""

SIGNED = Caller("by signature", "http", frozenset())
"""Has no token, but claims to have signed what it sends: the desk that takes it will see."""

_APPROVALS = "/api/v1/approvals"
_EVERYTHING: frozenset[Scope] = frozenset({"read", "approve"})
_BODY_PATIENCE = 10.0
CHALLENGE = 'Bearer realm="scheduled-events-bridge"'
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


def http_guard(desk: Desk, listen: Listen) -> Middleware:
    """Tokens decide; while there are none, anybody on this machine may read."""
    door = _Door(desk)

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        _check_host(request, listen)
        _check_origin(request)
        CALLER.set(await door.admit(request))
        await _read_body(request)
        return await handler(request)

    return guard


@dataclass(slots=True)
class _Seldom:
    """Says yes at most once a minute, and how often it was asked since."""

    asked: int = 0
    _next: float = field(default=0.0)

    def now(self) -> int | None:
        self.asked += 1
        if time.monotonic() < self._next:
            return None
        count, self.asked, self._next = self.asked, 0, time.monotonic() + 60
        return count


@dataclass(slots=True)
class _Door:
    desk: Desk
    _audits: _Seldom = field(default_factory=_Seldom)
    _logs: _Seldom = field(default_factory=_Seldom)

    async def admit(self, request: web.Request) -> Caller:
        tokens = self.desk.runtime.config.http.tokens
        scope = needed(request.method)
        if request.path == _APPROVALS and request.method == "OPTIONS":
            return ANYBODY
        if request.path == _APPROVALS and self._may_be_signed(request):
            return SIGNED
        if not tokens and scope == "read":
            return ANYBODY
        if not tokens:
            raise Problem(403, "No token is configured (http.tokens), so HTTP is read-only here.")
        presented = bearer(request.headers.get("Authorization"))
        if presented is None:
            sentence = "This needs a token: Authorization: Bearer TOKEN."
            raise Problem(401, sentence, WWW_Authenticate=CHALLENGE)
        caller, unreadable = who(presented, tokens)
        if unreadable and self._logs.now():
            for name, why in unreadable:
                log.error("http.token_unreadable", extra={"token": name, "error": why})
        if caller is None:
            await self._refused("unknown", request)
            challenge = f'{CHALLENGE}, error="invalid_token"'
            sentence = "The token is not one that this bridge knows."
            raise Problem(401, sentence, WWW_Authenticate=challenge)
        if scope not in caller.scopes:
            await self._refused(caller.name, request)
            challenge = f'{CHALLENGE}, error="insufficient_scope"'
            sentence = f"The token {caller.name} has no scope {scope}, which this needs."
            raise Problem(403, sentence, WWW_Authenticate=challenge)
        return caller

    def _may_be_signed(self, request: web.Request) -> bool:
        allow = self.desk.runtime.config.approvals.allow
        keys = any(rule.keys and rule.via in (None, "http") for rule in allow)
        claims = SIGNATURE in request.headers and "Authorization" not in request.headers
        return keys and claims and request.method == "POST"

    async def _refused(self, actor: str, request: web.Request) -> None:
        self.desk.tokens_refused += 1
        if count := self._audits.now():
            detail = {"remote": request.remote, "method": request.method, "count": count}
            log.warning("http.token_refused", extra={"actor": actor, **detail})
            audit = self.desk.runtime.audit
            await audit("token.refused", actor=actor, via="http", detail=detail)


def _check_host(request: web.Request, listen: Listen) -> None:
    if not host_is_ours(request.headers.getall("Host", []), listen):
        raise Problem(421, f"The Host header names another server; ask for {listen}.")


def _check_origin(request: web.Request) -> None:
    hosts = request.headers.getall("Host", [])
    origin = request.headers.get("Origin")
    if request.method not in SAFE_METHODS and not origin_is_ours(origin, request.scheme, hosts):
        raise Problem(403, "A page of another origin may not do this.")


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
        raise Problem(408, "The body did not arrive in time.") from None


def _peer(request: web.Request) -> str:
    """Who is at the other end of the control socket, where the system tells."""
    end = request.get_extra_info("socket")
    user = None if end is None else peer_user(end)
    return "local" if user is None else f"uid {user}"
