"""The connections of one listener: limited in number, and closed if no request comes in time."""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bridge.common.log import Seldom
from bridge.common.supervise import supervise

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds that a new connection has for its TLS handshake, and then for its first request."""
_PAUSE = 1.0
_BACKLOG = 128
_ABSENT = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
"""This machine lacks an address of the name, such as the IPv6 one of localhost."""


@dataclass(slots=True)
class Connections:
    """The open connections of one listener, at most *most*; any more are closed at once."""

    listener: str
    most: int
    patience: float = PATIENCE
    _open: dict[asyncio.BaseProtocol, "_Connection"] = field(default_factory=dict)
    _full: Seldom = field(default_factory=Seldom)

    def __len__(self) -> int:
        return len(self._open)

    def admit(self, make: Callable[[], asyncio.Protocol]) -> "_Connection | None":
        """A connection with its protocol; None if there are too many."""
        if len(self._open) >= self.most:
            if refused := self._full.now():
                fields = {"listener": self.listener, "most": self.most, "refused": refused}
                log.warning("http.connections_full", extra=fields)
            return None
        made = _Connection(make(), self)
        self._open[made.inner] = made
        return made

    def leave(self, connection: "_Connection") -> None:
        self._open.pop(connection.inner, None)

    def middleware(self) -> Middleware:
        """Notes that a connection has sent a complete request."""

        @web.middleware
        async def note(request: web.Request, handler: Handler) -> web.StreamResponse:
            found = self._open.get(request.protocol)
            if found is not None:
                found.asked()
            return await handler(request)

        return note


class _Connection(asyncio.Protocol):
    """Passes everything on to *inner*, and knows when the connection begins and ends."""

    def __init__(self, inner: asyncio.Protocol, home: Connections) -> None:
        self.inner = inner
        self._home = home
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(self._home.patience, transport.abort)
        self.inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.asked()
        self._home.leave(self)
        self.inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self.inner.eof_received()

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()

    def asked(self) -> None:
        """The first request is here; from now on aiohttp's own limits apply."""
        if self._deadline is not None:
            self._deadline.cancel()


class LimitedSite(web.BaseSite):
    """Serves bound sockets; calls *stopped* when it has closed them.

    It accepts connections itself. The server of asyncio does not count those in a TLS handshake,
    and in Python 3.11 it logs a hundred tracebacks a second while no file is left.
    """

    def __init__(
        self,
        runner: web.AppRunner,
        sockets: Sequence[socket.socket],
        connections: Connections,
        *,
        tls: ssl.SSLContext | None = None,
        stopped: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(runner, ssl_context=tls)
        self._sockets = sockets
        self._connections = connections
        self._stopped = stopped
        self._tasks: set[asyncio.Task[None]] = set()
        self._no_files = Seldom()

    @property
    def name(self) -> str:
        return self._connections.listener

    async def start(self) -> None:
        await super().start()
        for listener in self._sockets:
            accepting = partial(self._accept, listener)
            self._run(supervise(self.name, accepting, most=5.0))

    async def stop(self) -> None:
        await super().stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        _close(self._sockets)
        if self._stopped is not None:
            self._stopped()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=self.name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                taken, _ = await loop.sock_accept(listener)
            except ConnectionAbortedError:
                continue
            except OSError as error:
                if missed := self._no_files.now():
                    fields = {"listener": self.name, "error": str(error), "count": missed}
                    log.error("http.accept_failed", extra=fields)  # noqa: TRY400  no traceback for the operator
                await asyncio.sleep(_PAUSE)
                continue
            self._admit(taken)
            await asyncio.sleep(0)  # a flood of connections must leave time for everything else

    def _admit(self, taken: socket.socket) -> None:
        server = self._runner.server
        connection = None if server is None else self._connections.admit(server)
        if connection is None:
            taken.close()
        else:
            self._run(self._connect(taken, connection))

    async def _connect(self, taken: socket.socket, connection: _Connection) -> None:
        """Connect the socket to its protocol, after the TLS handshake if there is one."""
        loop, tls = asyncio.get_running_loop(), self._ssl_context
        patience = self._connections.patience if tls else None
        try:
            await loop.connect_accepted_socket(
                lambda: connection, taken, ssl=tls, ssl_handshake_timeout=patience
            )
        except OSError:  # not TLS, or the other end has gone; anyone can cause that
            self._connections.leave(connection)


async def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets on all addresses of *host*; raises OSError if one is taken, or none exists."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    made: list[socket.socket] = []
    missing: OSError | None = None
    for family, address in dict.fromkeys((one[0], one[4]) for one in found):
        try:
            made.append(socket.create_server(address, family=family, backlog=_BACKLOG))
        except OSError as error:
            if error.errno not in _ABSENT:
                _close(made)
                raise
            missing = error
    if not made:
        raise missing or OSError(f"{host} has no address")
    for sock in made:
        sock.settimeout(0)
    return made


def _close(sockets: Sequence[socket.socket]) -> None:
    for sock in sockets:
        sock.close()
