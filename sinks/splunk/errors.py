"""What aiohttp raises, in one sentence; the only place that does it."""

import ssl
from collections.abc import Callable
from socket import gaierror
from typing import Any

import aiohttp

from bridge.plugins import Unavailable

_HUNG_UP = "it hung up without an answer"


def unavailable(error: BaseException, where: str) -> Unavailable:
    return Unavailable(f"{where}: {_why(error)}")


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


_REASONS: list[tuple[type[BaseException], Callable[[Any], str]]] = [
    (aiohttp.ClientConnectorCertificateError, _certificate),
    (
        aiohttp.ClientHttpProxyError,
        lambda error: f"the proxy answered {error.status} instead of connecting us",
    ),
    (
        aiohttp.ClientProxyConnectionError,
        lambda error: f"the proxy cannot be reached: {_inner(error)}",
    ),
    (aiohttp.ClientConnectorError, _inner),
    (aiohttp.ServerDisconnectedError, lambda _: _HUNG_UP),
    (aiohttp.ClientResponseError, lambda _: "what it answers is not HTTP that can be read"),
    (ssl.SSLCertVerificationError, _certificate),
    (ssl.SSLError, _tls),
    (gaierror, lambda _: "its name cannot be resolved"),
    (ConnectionRefusedError, lambda _: "nothing listens there"),
    (TimeoutError, lambda _: "no connection in time"),
    (ConnectionError, lambda _: _HUNG_UP),
    (OSError, lambda error: error.strerror or type(error).__name__),
]
