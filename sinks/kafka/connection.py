"""Connects to a cluster, with the current credentials and through the first broker that answers.

aiokafka's own bootstrap only logs its reasons, tries one broker after the other however long
each is silent, and leaks a socket when canceled. This one does not. Sinks and approval
sources both use it.
"""

import asyncio
import logging
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import AIOKafkaConnection, OAuthAuthenticator
from aiokafka.errors import AuthenticationFailedError
from aiokafka.protocol.metadata import MetadataRequest

from bridge.plugins import TokenSource, Unavailable, read_secret
from sinks.kafka.errors import CONNECTING, why_not_connected
from sinks.kafka.settings import Connection, Sasl

# It logs several times a second what our results say once; its debug lines quote passwords.
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

HEAD_START = 0.5
"""How long to wait for a broker before trying the next one as well, in seconds."""


@dataclass(frozen=True)
class _Tokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no type hints
    """A token source as aiokafka expects it; equal when the source is equal."""

    source: TokenSource
    named: Mapping[str, str] = field(default_factory=dict)

    async def token(self) -> str:
        try:
            return await self.source.token()
        except Unavailable as error:
            # Any other exception would end aiokafka's background tasks for good.
            raise AuthenticationFailedError(str(error)) from error

    def extensions(self) -> dict[str, str]:
        return dict(self.named)


class _Bearer(OAuthAuthenticator):  # type: ignore[misc]  # aiokafka has no type hints
    """Reads the broker's answer; aiokafka takes every answer for success."""

    async def step(self, payload: bytes | None) -> tuple[bytes, bool] | None:
        if payload:
            self._sasl_oauth_token_provider.source.forget()
            said = payload[:200].decode(errors="replace")
            raise AuthenticationFailedError(f"the token is not accepted: {said}")
        step: tuple[bytes, bool] | None = await super().step(payload)
        return step


class _Connection(AIOKafkaConnection):  # type: ignore[misc]  # aiokafka has no type hints
    def authenticator_oauth(self) -> _Bearer:
        return _Bearer(sasl_oauth_token_provider=self._sasl_oauth_token_provider)


def log_in(connection: Connection) -> dict[str, Any]:
    """The security options of aiokafka, from files as they are now; equal until one changes.

    Raises `Unavailable` when a file cannot be used.
    """
    tls, sasl = connection.tls, connection.sasl
    protocol = ("SASL_" if sasl else "") + ("SSL" if tls else "PLAINTEXT")
    options: dict[str, Any] = {"security_protocol": protocol}
    if tls is not None:
        options["ssl_context"] = tls.context()
    return options | (_sasl(sasl) if sasl is not None else {})


def _sasl(sasl: Sasl) -> dict[str, Any]:
    options: dict[str, Any] = {"sasl_mechanism": sasl.mechanism}
    if sasl.tokens is not None:
        options["sasl_oauth_token_provider"] = _Tokens(sasl.tokens, sasl.extensions)
    if sasl.password is not None:
        options["sasl_plain_username"] = sasl.username
        options["sasl_plain_password"] = read_secret(sasl.password, "the SASL password")
    return options


@dataclass(frozen=True)
class Connector:
    """The brokers, and how to connect and log in to them."""

    servers: list[tuple[str, int]]
    client_id: str
    patience: float
    """The limit for one request, in seconds."""
    login: Mapping[str, Any] = field(repr=False)

    async def enter(self) -> AIOKafkaConnection:
        """Connect to any of the servers. Raises `Unavailable` with the reason of each."""
        waiting = random.sample(self.servers, len(self.servers))
        attempts: dict[asyncio.Task[AIOKafkaConnection], str] = {}
        reasons: dict[str, str] = {}
        try:
            while waiting or attempts:
                if waiting:
                    host, port = waiting.pop()
                    attempts[asyncio.create_task(self.connect_to(host, port))] = f"{host}:{port}"
                entered = await self._first(attempts, reasons, hurry=bool(waiting))
                if entered is not None:
                    return entered
        finally:
            for task in attempts:
                task.add_done_callback(_abort_unused)
                task.cancel()
        raise Unavailable(_together(reasons))

    async def connect_to(self, host: str, port: int) -> AIOKafkaConnection:
        """Connect to this broker and log in. Raises what aiokafka raises, see `CONNECTING`."""
        patience = int(self.patience * 1000)
        connection = _Connection(
            host, port, client_id=self.client_id, request_timeout_ms=patience, **self.login
        )
        await connection.connect()
        return connection

    async def _first(
        self,
        attempts: dict[asyncio.Task[AIOKafkaConnection], str],
        reasons: dict[str, str],
        *,
        hurry: bool,
    ) -> AIOKafkaConnection | None:
        done, _ = await asyncio.wait(
            attempts,
            timeout=HEAD_START if hurry else None,
            return_when=asyncio.FIRST_COMPLETED,
        )
        for task in done:
            problem = task.exception()
            if problem is None:
                del attempts[task]
                return task.result()
            reasons[attempts.pop(task)] = why_not_connected(problem, self.patience)
        return None


def _abort_unused(task: asyncio.Task[AIOKafkaConnection]) -> None:
    """Close a connection that is not needed: another was faster, or the caller was canceled."""
    if not task.cancelled() and task.exception() is None:
        abort(task.result())


def _together(reasons: Mapping[str, str]) -> str:
    """Name brokers that failed for the same reason together."""
    alike: dict[str, list[str]] = {}
    for server, reason in sorted(reasons.items()):
        alike.setdefault(reason, []).append(server)
    return "; ".join(f"{', '.join(servers)}: {reason}" for reason, servers in alike.items())


def abort(connection: AIOKafkaConnection) -> None:
    """Close immediately; waiting for the broker to agree could take forever."""
    writer = connection._writer  # noqa: SLF001  no public way to its transport
    connection.close()
    if writer is not None:
        writer.transport.abort()


def use_connector(client: Any, connector: Connector) -> None:
    """Let an aiokafka client (of a producer or a consumer) connect through *connector*."""
    client.bootstrap = partial(_bootstrap, client, connector)


async def _bootstrap(client: Any, connector: Connector) -> None:
    connection = await connector.enter()
    try:
        metadata = await connection.send(MetadataRequest([]))
    except CONNECTING as error:
        reason = why_not_connected(error, connector.patience)
        raise Unavailable(f"{connection.host}:{connection.port}: {reason}") from None
    finally:
        abort(connection)
    if not metadata.brokers:
        raise Unavailable(f"{connection.host}:{connection.port}: its metadata lists no brokers yet")
    client.cluster.update_metadata(metadata)
    client._sync_task = asyncio.create_task(client._md_synchronizer())  # noqa: SLF001  as its own bootstrap does
