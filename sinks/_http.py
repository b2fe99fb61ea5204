"""HTTP as sinks speak it: a client that keeps to itself, and what aiohttp raises, in words."""

import errno
import ssl
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import aiohttp

from sinks import _network

BROKEN = "it broke the connection off"
HUNG_UP = "it hung up without an answer"
_CONNECT_WITHIN = 5.0
_IDLE = 4.0
"""Many servers hang up after five idle seconds; who comes then finds the line dead."""


def client(
    connections: int, headers: Mapping[str, str] | None = None, **options: Any
) -> aiohttp.ClientSession:
    """At most so many connections, of its own: no cookies, no proxy from the environment."""
    agent = {"User-Agent": f"scheduled-events-bridge/{version('scheduled-events-bridge')}"}
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, keepalive_timeout=_IDLE),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_WITHIN),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        headers={**agent, **(headers or {})},
        **options,
    )


def why(error: BaseException) -> str:
    """Why a request had no answer, to follow the receiver's address and a colon."""
    return _network.why(error, _REASONS)


def _system(error: OSError) -> str:
    """What a connection met later, aiohttp puts into an error of its own."""
    if isinstance(error.__cause__, ssl.SSLError):
        return why(error.__cause__)
    if error.errno in {errno.ECONNRESET, errno.EPIPE}:
        return BROKEN
    return error.strerror or type(error).__name__


_REASONS: _network.Reasons = {
    aiohttp.ClientConnectorCertificateError: lambda error: why(error.certificate_error),
    aiohttp.ClientHttpProxyError: lambda error: (
        f"the proxy answered {error.status} instead of connecting us"
    ),
    aiohttp.ClientProxyConnectionError: lambda error: (
        f"its proxy cannot be reached: {why(error.os_error)}"
    ),
    aiohttp.ClientConnectorError: lambda error: why(error.os_error),
    aiohttp.ServerDisconnectedError: HUNG_UP,
    aiohttp.ClientResponseError: "what it answers is not HTTP that can be read",
    TimeoutError: f"no connection within {_CONNECT_WITHIN:g} s",
    ConnectionError: BROKEN,
    OSError: _system,
    # Words of others may hold a URL, and with it a secret.
    Exception: lambda error: type(error).__name__,
}
