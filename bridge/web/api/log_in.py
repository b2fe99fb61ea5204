"""The log-in of the console: a token or a one-time code becomes a session."""

from typing import Any

from aiohttp import web

from bridge.common.strictjson import decode
from bridge.config import TokenSettings
from bridge.web.access import cookies
from bridge.web.access.authentication import AUTHENTICATOR, NOBODY
from bridge.web.access.middleware import CALLER
from bridge.web.access.tokens import SESSION
from bridge.web.api import bridge_shapes, shapes
from bridge.web.context import CONTEXT, WebContext
from bridge.web.problems import ProblemDetails

routes = web.RouteTableDef()
_WHAT = 'Send {"token": …} or {"code": …}, as JSON; "key": true makes a session that needs a key.'
_LOCAL = "The control socket needs no log-in."


@routes.get(SESSION)
async def session(request: web.Request) -> web.Response:
    """Say who the caller is, also when that is nobody."""
    caller = CALLER.get()
    config = request.app[CONTEXT].runtime.config
    who = None if caller is NOBODY else bridge_shapes.caller(caller)
    return web.json_response({"caller": who, "access": bridge_shapes.access(config)})


@routes.post(SESSION)
async def log_in(request: web.Request) -> web.Response:
    """Begin a session, and end the one that the browser had."""
    context, authenticator = request.app[CONTEXT], request.app.get(AUTHENTICATOR)
    if authenticator is None:
        raise ProblemDetails(400, _LOCAL)
    said = await _said(request, {"token", "code"})
    name = await authenticator.log_in(request, said.get("token"), said.get("code"))
    _end(request, context)
    try:
        opened = context.sessions.open(_token(context, name), keyed="key" in said)
    except (OSError, ValueError):
        raise ProblemDetails(503, "The token cannot be read now.", Retry_After="1") from None
    body = {
        "caller": bridge_shapes.caller(opened.caller),
        "access": bridge_shapes.access(context.runtime.config),
        **({} if opened.key is None else {"key": opened.key}),
    }
    response = web.json_response(body, status=201)
    cookies.give(response, request, opened.id, context.runtime.config.http.public_url)
    return response


@routes.delete(SESSION)
async def log_out(request: web.Request) -> web.Response:
    response = web.Response(status=204)
    if CALLER.get().by == "session":
        _end(request, request.app[CONTEXT])
        cookies.take_back(response, request)
    return response


@routes.post(SESSION + "/codes")
async def code(request: web.Request) -> web.Response:
    """Issue a code that opens the console once, for someone who can use the control socket."""
    context = request.app[CONTEXT]
    if CALLER.get().via != "control":
        raise ProblemDetails(403, "Only the control socket gives out codes.")
    said = await _said(request, {"token"})
    token = _token(context, said["token"])
    made, expires = context.sessions.issue_code(token)
    url = f"{context.url}#code={made}" if context.url else None
    body = {"code": made, "expires": shapes.moment(expires), "url": url}
    return web.json_response(body, status=201)


def _end(request: web.Request, context: WebContext) -> None:
    key = cookies.session_key(request)
    for name in cookies.session_ids(request):
        context.sessions.end(name, key)


async def _said(request: web.Request, names: set[str]) -> dict[str, str]:
    """The body: one of *names*, with text, and `key` if it is there and true."""
    if request.content_type != "application/json":
        raise ProblemDetails(415, _WHAT)
    try:
        said: Any = decode(await request.read(), unique=True)
    except ValueError:
        said = None
    keyed = isinstance(said, dict) and said.pop("key", False)
    if not isinstance(said, dict) or len(said) != 1 or not said.keys() <= names:
        raise ProblemDetails(400, _WHAT)
    if not isinstance(keyed, bool) or not all(isinstance(v, str) and v for v in said.values()):
        raise ProblemDetails(400, _WHAT)
    return said | ({"key": ""} if keyed else {})


def _token(context: WebContext, name: str) -> TokenSettings:
    for token in context.runtime.config.http.tokens:
        if token.name == name:
            return token
    raise ProblemDetails(404, f"There is no token {name[:128]!r} in http.tokens.")
