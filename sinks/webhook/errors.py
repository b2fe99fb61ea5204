"""What aiohttp raises, put into one sentence; the only place that does it."""

import errno
import ssl
from collections.abc import Callable
from socket import gaierror
from typing import Any

import aiohttp

from bridge.plugins import Unavailable

CONNECT_WITHIN = 5.0
_BROKEN = "it broke the connection off"
_HUNG_UP = "it hung up without an answer"
_SLOW = f"no connection within {CONNECT_WITHIN:g} s"


def unavailable(error: BaseException, where: str, *, anonymous: bool = False) -> Unavailable:
    """Why a request had no answer; *where* is the receiver.

    With TLS 1.3 one that misses a client certificate may hang up without a word, so an *anonymous*
    client is told of that possibility.
    """
    why = _why(error)
    if anonymous and why in {_BROKEN, _HUNG_UP}:
        why += "; does it want a client certificate?"
    return Unavailable(f"{where}: {why}")


def _why(error: BaseException) -> str:
    for kind, say in _REASONS:
        if isinstance(error, kind):
            return say(error)
    return type(error).__name__


def _inner(error: aiohttp.ClientConnectorError) -> str:
    return _why(error.os_error)


def _certificate(error: Any) -> str:
    found = getattr(error, "certificate_error", error)
    said = getattr(found, "verify_message", None) or str(found)
    return f"its certificate is not accepted: {said}"


def _tls(error: ssl.SSLError) -> str:
    reason = error.reason or ""
    if reason == "WRONG_VERSION_NUMBER" or "RECORD_LAYER" in reason:
        return "it does not speak TLS there"
    if "ALERT" in reason:
        said = reason.partition("ALERT_")[2].replace("_", " ").lower()
        return f"it refuses our side of TLS ({said or reason}); is a client certificate needed?"
    return f"TLS failed: {reason or type(error).__name__}"


def _system(error: OSError) -> str:
    """What a connection met later, aiohttp puts into an error of its own."""
    if isinstance(error.__cause__, ssl.SSLError):
        return _tls(error.__cause__)
    if error.errno in {errno.ECONNRESET, errno.EPIPE}:
        return _BROKEN
    return error.strerror or type(error).__name__


_REASONS: list[tuple[type[BaseException], Callable[[Any], str]]] = [
    (aiohttp.ClientConnectorCertificateError, _certificate),
    (
        aiohttp.ClientHttpProxyError,
        lambda error: f"the proxy answered {error.status} instead of connecting us",
    ),
    (
        aiohttp.ClientProxyConnectionError,
        lambda error: f"its proxy cannot be reached: {_inner(error)}",
    ),
    (aiohttp.ClientConnectorError, _inner),
    (aiohttp.ServerDisconnectedError, lambda _: _HUNG_UP),
    (aiohttp.ClientResponseError, lambda _: "what it answers is not HTTP that can be read"),
    (ssl.SSLCertVerificationError, _certificate),
    (ssl.SSLError, _tls),
    (gaierror, lambda _: "its name cannot be resolved"),
    (ConnectionRefusedError, lambda _: "nothing listens there"),
    (TimeoutError, lambda _: _SLOW),
    (ConnectionError, lambda _: _BROKEN),
    (OSError, _system),
]
