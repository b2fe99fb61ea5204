"""Turns what sockets and TLS raise into `Unavailable`, with the receiver's address and a reason."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from bridge.plugins import Unavailable
from sinks import _network
from sinks.syslog.settings import Address

_HUNG_UP = "it closed the connection"
_HUNG_UP_ON_TLS = "it closed the connection; perhaps it does not accept the client certificate"
_REASONS: _network.Reasons = {ssl.SSLEOFError: _HUNG_UP, ConnectionError: _HUNG_UP}


@asynccontextmanager
async def translated(to: Address, limit: float) -> AsyncGenerator[None]:
    """Turn a timeout or an error into `Unavailable`, with the receiver's address."""
    try:
        async with asyncio.timeout(limit):
            yield
    except TimeoutError:
        raise Unavailable(f"{to}: it did not accept everything within {limit:g} s") from None
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"{to}: {why(error, tls=to.scheme == 'tls')}") from None


def why(error: BaseException, *, tls: bool = False) -> str:
    """The reason; the caller puts the receiver's address and a colon before it."""
    said = _network.why(error, _REASONS)
    return _HUNG_UP_ON_TLS if tls and said == _HUNG_UP else said
