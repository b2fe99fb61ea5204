"""Sentences for what sockets and TLS raise; the caller puts the address and a colon first."""

import ssl
from collections.abc import Callable, Mapping
from socket import gaierror
from typing import Any

Reasons = Mapping[type[BaseException], str | Callable[[Any], str]]
"""What a kind of error means: a sentence, or a function that makes one."""


def why(error: BaseException, own: Reasons | None = None) -> str:
    """Use the most specific kind; *own* comes before the usual reasons."""
    reasons = {**_USUAL, **(own or {})}
    for kind in type(error).__mro__:
        if kind in reasons:
            said = reasons[kind]
            return said if isinstance(said, str) else said(error)
    return _itself(error)


def _itself(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _certificate(error: ssl.SSLCertVerificationError) -> str:
    said = getattr(error, "verify_message", None) or str(error)
    return f"its certificate is not accepted: {said}"


def _tls(error: ssl.SSLError) -> str:
    reason = error.reason or ""
    if reason in {"WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG"} or "RECORD_LAYER" in reason:
        return "it does not use TLS on this port"
    if "ALERT" in reason:
        said = reason.partition("ALERT_")[2].replace("_", " ").lower()
        return f"it rejects our TLS ({said or reason}); does it need a client certificate?"
    return f"TLS failed: {reason or _itself(error)}"


_NO_NAME = "its name cannot be resolved"
_USUAL: Reasons = {
    ssl.SSLCertVerificationError: _certificate,
    ssl.SSLError: _tls,
    gaierror: _NO_NAME,
    UnicodeError: _NO_NAME,
    ConnectionRefusedError: "nothing listens there",
    OSError: lambda error: error.strerror or _itself(error),
}
