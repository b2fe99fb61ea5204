"""What sockets and TLS raise, in one sentence that tells its reader where to look."""

import ssl
from collections.abc import Callable
from socket import gaierror
from typing import Any

_HUNG_UP = "it hung up"
_HUNG_UP_ON_TLS = "it hung up, as it also does on a client certificate that it does not accept"


def _tls(error: ssl.SSLError) -> str:
    reason = error.reason or ""
    if reason in {"WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG"} or "RECORD_LAYER" in reason:
        return "it does not speak TLS there"
    if "ALERT" in reason:
        said = reason.partition("ALERT_")[2].replace("_", " ").lower()
        return f"it refuses our side of TLS ({said or reason}); is a client certificate needed?"
    return f"TLS failed: {reason or error}"


_REASONS: list[tuple[type[BaseException], Callable[[Any], str]]] = [
    (
        ssl.SSLCertVerificationError,
        lambda error: f"its certificate is not accepted: {error.verify_message}",
    ),
    (ssl.SSLEOFError, lambda _: _HUNG_UP),
    (ssl.SSLError, _tls),
    (gaierror, lambda _: "its name cannot be resolved"),
    (UnicodeError, lambda _: "its name cannot be resolved"),
    (ConnectionRefusedError, lambda _: "nothing listens there"),
    (ConnectionError, lambda _: _HUNG_UP),
    (OSError, lambda error: error.strerror or str(error)),
]


def why(error: BaseException, *, tls: bool = False) -> str:
    """To follow the receiver's address and a colon."""
    said = next((say(error) for kind, say in _REASONS if isinstance(error, kind)), str(error))
    return _HUNG_UP_ON_TLS if tls and said == _HUNG_UP else said or type(error).__name__
