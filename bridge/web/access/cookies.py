"""The cookie of a session: its name, its attributes, and how a request presents it; pure."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from aiohttp import web

KEY_HEADER = "X-Session-Key"
KEY_PARAMETER = "key"
STREAM = "/api/v1/stream"
_MOST = 8


def cookie_name(host: str, *, secure: bool) -> str:
    """The name for this port: browsers share cookies among the ports of a host.

    With the prefix `__Host-`, a browser accepts it only over TLS and only from this host.
    """
    try:
        port = urlsplit(f"//{host}").port
    except ValueError:
        port = None
    name = f"seb-session-{port or (443 if secure else 80)}"
    return f"__Host-{name}" if secure else name


def session_ids(request: web.Request) -> Iterator[str]:
    """The values of our cookie; a page on another port may have set one before the real one."""
    name = cookie_name(request.host, secure=request.secure)
    found = 0
    for header in request.headers.getall("Cookie", []):
        for part in header.split(";"):
            given, _, value = part.strip().partition("=")
            if given == name and found < _MOST:
                found += 1
                yield value


def session_key(request: web.Request) -> str | None:
    """The key that the page presents; EventSource cannot send headers, so there it is a parameter.

    Without its cookie, a key in the log of a proxy proves nothing.
    """
    key = request.headers.get(KEY_HEADER)
    if key is None and request.method == "GET" and request.path == STREAM:
        return request.query.get(KEY_PARAMETER)
    return key


def give(response: web.Response, request: web.Request, value: str) -> None:
    """Set the cookie. It lasts until the browser closes, and no longer than its session."""
    name, secure = cookie_name(request.host, secure=request.secure), request.secure
    response.set_cookie(name, value, path="/", httponly=True, samesite="Strict", secure=secure)


def take_back(response: web.Response, request: web.Request) -> None:
    name, secure = cookie_name(request.host, secure=request.secure), request.secure
    response.del_cookie(name, path="/", httponly=True, samesite="Strict", secure=secure)
