"""The cookie of a session: its name, its attributes, and how a request presents it; pure."""

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from aiohttp import web

from bridge.config.values import PublicUrl

KEY_HEADER = "X-Session-Key"
KEY_PARAMETER = "key"
STREAM = "/api/v1/stream"
_MOST = 8


def cookie_names(host: str, *, secure: bool) -> list[str]:
    """The names for this port, the best one first: browsers share cookies among all ports.

    With the prefix `__Host-`, a browser accepts it only over TLS and only from this host. Without
    TLS here, there may be a proxy with TLS.
    """
    try:
        port = urlsplit(f"//{host}").port
    except ValueError:
        port = None
    name = f"seb-session-{port or 'default'}"
    return [f"__Host-{name}"] if secure else [f"__Host-{name}", name]


def session_ids(request: web.Request) -> Iterator[str]:
    """The values of our cookie; a page on another port may have set one before the real one."""
    names = cookie_names(request.host, secure=request.secure)
    found = 0
    for header in request.headers.getall("Cookie", []):
        for part in header.split(";"):
            given, _, value = part.strip().partition("=")
            if given in names and found < _MOST:
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


def give(
    response: web.Response, request: web.Request, value: str, public: Sequence[PublicUrl]
) -> None:
    """Set the cookie. It lasts until the browser closes, and no longer than its session."""
    secure = request.secure or _is_public(request.headers.get("Origin", ""), public)
    name = cookie_names(request.host, secure=request.secure)[0 if secure else -1]
    response.set_cookie(name, value, path="/", httponly=True, samesite="Strict", secure=secure)


def take_back(response: web.Response, request: web.Request) -> None:
    for name in cookie_names(request.host, secure=request.secure):
        secure = name.startswith("__Host-")
        response.del_cookie(name, path="/", httponly=True, samesite="Strict", secure=secure)


def _is_public(origin: str, public: Sequence[PublicUrl]) -> bool:
    """Whether the browser talks TLS to a proxy of ours."""
    return any(url.is_secure and url.origin == origin.lower() for url in public)
