"""An MQTT server's address, and the current credentials."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bridge.plugins import TLS, Unavailable, read_secret
from sinks.mqtt.settings import Connection


class _NamingTLS(TLS):
    """TLS with ALPN protocols; its own context, because contexts are shared by their keys."""

    alpn: tuple[str, ...]

    def context(self) -> ssl.SSLContext:
        context = super().context()
        context.set_alpn_protocols(list(self.alpn))
        return context


@dataclass(frozen=True)
class Login:
    """The credentials; equal until a file changes."""

    context: ssl.SSLContext | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def log_in(connection: Connection) -> Login:
    """The credentials from the files. Raises `Unavailable` when one cannot be used."""
    tls, password = connection.tls, connection.password
    if tls is not None and connection.alpn:
        tls = _NamingTLS(**dict(tls), alpn=connection.alpn)
    return Login(
        context=None if tls is None else tls.context(),
        username=connection.username,
        password=None if password is None else read_secret(password, "the password"),
        headers={name: _header(name, connection) for name in connection.headers},
    )


def _header(name: str, connection: Connection) -> str:
    value = read_secret(connection.headers[name], f"the header {name}")
    if not value.isprintable():
        raise Unavailable(f"the header {name} contains line breaks or control characters")
    return value


@dataclass(frozen=True)
class Connector:
    """One server, and the credentials for it."""

    host: str
    port: int
    server: str
    """HOST:PORT, for sentences."""
    client_id: str
    version: Literal["5", "3.1.1"]
    keep_alive: int
    patience: float
    """The limit for connecting, in seconds."""
    login: Login
    path: str | None = None
    """Of the WebSocket; None: no WebSocket."""


def make_connector(connection: Connection, client_id: str, patience: float) -> Connector:
    """Raises `Unavailable` when a file with credentials cannot be used."""
    host, port = connection.address
    websockets = connection.transport == "websockets"
    return Connector(
        host=host,
        port=port,
        server=connection.server,
        client_id=client_id,
        version=connection.version,
        keep_alive=round(connection.keep_alive),
        patience=patience,
        login=log_in(connection),
        path=(connection.path or "/mqtt") if websockets else None,
    )
