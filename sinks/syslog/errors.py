"""What sockets and TLS raise, in one sentence that tells its reader where to look."""

import ssl

from sinks import _network

_HUNG_UP = "it hung up"
_HUNG_UP_ON_TLS = "it hung up, as it also does on a client certificate that it does not accept"
_REASONS: _network.Reasons = {ssl.SSLEOFError: _HUNG_UP, ConnectionError: _HUNG_UP}


def why(error: BaseException, *, tls: bool = False) -> str:
    """To follow the receiver's address and a colon."""
    said = _network.why(error, _REASONS)
    return _HUNG_UP_ON_TLS if tls and said == _HUNG_UP else said
