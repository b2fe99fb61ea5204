"""One connection over TCP or TLS, and what the receiver has got of it.

Syslog has no acknowledgments. TCP knows two things instead: whether the receiver's machine has
confirmed every byte, and whether the receiver has closed the connection.
"""

import asyncio
import socket
import ssl
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass

from sinks.syslog.settings import Address

_GOODBYE = 1.0
_FIRST_LOOK, _RAREST_LOOK = 0.001, 0.05
_SILENCE = 0.25
_KEEPALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}
# Offsets in Linux's struct tcp_info: segments that are not confirmed, microseconds of a
# round trip, and bytes that are not sent yet.
_UNCONFIRMED, _ROUND_TRIP, _UNSENT, _LENGTH = 24, 68, 144, 148


class _Watcher(asyncio.Protocol):
    """Waits for the end of the connection; a syslog receiver sends nothing else."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[Exception | None] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()

    def eof_received(self) -> None:
        self._end(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc)
        if not self.gone.done():
            self.gone.set_result(None)

    def _end(self, problem: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(problem)


@dataclass(frozen=True, slots=True)
class Connection:
    """`outer` is what the sink writes to: TLS around `inner`, or `inner` itself.

    Its methods raise OSError; `abort` ends it in any state.
    """

    outer: asyncio.Transport
    inner: asyncio.Transport
    watcher: _Watcher
    context: ssl.SSLContext | None

    @property
    def tls(self) -> str | None:
        found: ssl.SSLObject | None = self.outer.get_extra_info("ssl_object")
        return found.version() if found else None

    async def deliver(self, data: bytes) -> None:
        """Return once the receiver's machine has all bytes and the connection is still open."""
        self._still_there()
        self.outer.write(data)
        pause = _FIRST_LOOK
        while self._under_way():
            # The system does not report the last confirmation, so poll at growing intervals.
            await self._listen(pause)
            pause = min(pause * 2, _RAREST_LOOK)
        await self._listen(0)

    async def finish(self) -> None:
        """Send the end of the stream, and return once the receiver has closed in order.

        It has read everything then: closing with unread bytes resets the connection.
        """
        if self.outer is self.inner:
            self.outer.write_eof()
        else:
            self.outer.close()
        problem = await self.watcher.ended
        if problem is not None:
            raise problem

    async def admitted(self) -> None:
        """With TLS 1.3 the handshake ends here before the receiver has checked our certificate.

        A ticket shows that it accepts us; an alert or a closed connection that it does not. Some
        receivers send no tickets: then a moment of silence after one round trip has to do.
        """
        tls: ssl.SSLObject | None = self.outer.get_extra_info("ssl_object")
        if tls is None or tls.version() != "TLSv1.3":
            return
        enough = _SILENCE + 2 * _round_trip(self.inner.get_extra_info("socket"))
        waited, pause = 0.0, _FIRST_LOOK
        while waited < enough and not (tls.session and tls.session.has_ticket):
            await self._listen(pause)
            waited, pause = waited + pause, pause * 2

    async def leave(self) -> None:
        """Close in order, but do not wait long for the receiver."""
        self.outer.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GOODBYE):
                await asyncio.shield(self.watcher.gone)

    def abort(self) -> None:
        self.inner.abort()

    async def _listen(self, seconds: float) -> None:
        await asyncio.wait({self.watcher.ended}, timeout=seconds)
        self._still_there()

    def _still_there(self) -> None:
        if self.watcher.ended.done():
            raise self.watcher.ended.result() or ConnectionResetError("closed by the receiver")

    def _under_way(self) -> bool:
        if self.outer.get_write_buffer_size() or self.inner.get_write_buffer_size():
            return True
        return _unconfirmed(self.inner.get_extra_info("socket"))


async def connect(address: Address, context: ssl.SSLContext | None, patience: float) -> Connection:
    """Raises OSError when the receiver cannot be reached or its certificate is not valid."""
    loop = asyncio.get_running_loop()
    inner, watcher = await loop.create_connection(_Watcher, sock=await _reach(address, patience))
    if context is None:
        return Connection(inner, inner, watcher, None)
    try:
        outer = await loop.start_tls(
            inner,
            watcher,
            context,
            server_hostname=address.host.partition("%")[0],
            ssl_shutdown_timeout=patience,
        )
    except BaseException:
        inner.abort()
        raise
    if outer is None:
        raise ConnectionResetError("closed by the receiver")
    return Connection(outer, inner, watcher, context)


async def _reach(address: Address, patience: float) -> socket.socket:
    """The first address of the name that answers; each gets its share of the time.

    asyncio tries several at the same time, but leaks them when it is canceled.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    problem: OSError = socket.gaierror("the name has no address")
    for family, kind, protocol, _, where in found:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(0)
            _keep_alive(sock)
            async with asyncio.timeout(patience / len(found)):
                await loop.sock_connect(sock, where)
        except OSError as error:
            sock.close()
            problem = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise problem


def _keep_alive(sock: socket.socket) -> None:
    """TCP keep-alive finds a receiver that vanished while nothing is sent."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _unconfirmed(sock: socket.socket) -> bool:
    """Whether bytes are unconfirmed; False where the system does not report it."""
    return bool(_tcp_info(sock, _UNCONFIRMED) or _tcp_info(sock, _UNSENT))


def _round_trip(sock: socket.socket) -> float:
    """The round-trip time, in seconds; 0 where the system does not report it."""
    return _tcp_info(sock, _ROUND_TRIP) / 1e6


def _tcp_info(sock: socket.socket, place: int) -> int:
    if sys.platform != "linux":
        return 0
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LENGTH)
    if len(info) < place + 4:  # an old kernel
        return 0
    (value,) = struct.unpack_from("=I", info, place)
    return int(value)
