"""The HTTP client that sinks share, and sentences for the errors that aiohttp raises."""

import asyncio
import errno
import ssl
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import aiohttp
from yarl import URL

from sinks import _network

BROKEN = "it closed the connection early"
HUNG_UP = "it closed the connection without an answer"
_NO_PROXY = "the proxy cannot be reached"
_CONNECT_WITHIN = 5.0
_GOODBYE = 1.0
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


async def look(url: str, context: ssl.SSLContext | None, proxy: str | None) -> str | None:
    """Connect to the server, or to the proxy in front of it, and leave; return why that fails."""
    target, tls = (URL(url), context) if proxy is None else (URL(proxy), None)
    try:
        async with asyncio.timeout(_CONNECT_WITHIN):
            _, writer = await asyncio.open_connection(target.raw_host, target.port, ssl=tls)
    except (OSError, ValueError) as error:
        return why(error) if proxy is None else f"{_NO_PROXY}: {why(error)}"
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_GOODBYE):
            await writer.wait_closed()
    writer.transport.abort()
    return None


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
    aiohttp.ClientProxyConnectionError: lambda error: f"{_NO_PROXY}: {why(error.os_error)}",
    aiohttp.ClientConnectorError: lambda error: why(error.os_error),
    aiohttp.ServerDisconnectedError: HUNG_UP,
    aiohttp.ClientResponseError: "its answer is not valid HTTP",
    TimeoutError: f"no connection within {_CONNECT_WITHIN:g} s",
    ConnectionError: BROKEN,
    OSError: _system,
    # The error's text may contain a URL, and a URL may contain a secret.
    Exception: lambda error: type(error).__name__,
}
