"""The HTTP client that sinks share, and sentences for the errors that aiohttp raises."""

import errno
import ssl
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import aiohttp

from sinks import _network

BROKEN = "it closed the connection early"
HUNG_UP = "it closed the connection without an answer"
_CONNECT_WITHIN = 5.0
_IDLE = 4.0
"""Many servers close a connection that is idle for five seconds, so close ours earlier."""


def client(
    connections: int, headers: Mapping[str, str] | None = None, **options: Any
) -> aiohttp.ClientSession:
    """A session with at most *connections*; no cookies, no proxy from the environment."""
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
    """Why a request got no answer; the caller puts the receiver's address and a colon before it."""
    return _network.why(error, _REASONS)


def _system(error: OSError) -> str:
    """The reason for a failure on an open connection; aiohttp wraps the original error."""
    if isinstance(error.__cause__, ssl.SSLError):
        return why(error.__cause__)
    if error.errno in {errno.ECONNRESET, errno.EPIPE}:
        return BROKEN
    return error.strerror or type(error).__name__


_REASONS: _network.Reasons = {
    aiohttp.ClientConnectorCertificateError: lambda error: why(error.certificate_error),
    aiohttp.ClientHttpProxyError: lambda error: (
        f"the proxy answered {error.status} instead of connecting"
    ),
    aiohttp.ClientProxyConnectionError: lambda error: (
        f"the proxy cannot be reached: {why(error.os_error)}"
    ),
    aiohttp.ClientConnectorError: lambda error: why(error.os_error),
    aiohttp.ServerDisconnectedError: HUNG_UP,
    aiohttp.ClientResponseError: "its answer is not valid HTTP",
    TimeoutError: f"no connection within {_CONNECT_WITHIN:g} s",
    ConnectionError: BROKEN,
    OSError: _system,
    # The error's text may contain a URL, and a URL may contain a secret.
    Exception: lambda error: type(error).__name__,
}
