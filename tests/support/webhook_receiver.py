"""A webhook receiver on loopback: real HTTP, with the answers and failures that a test asks for."""

import asyncio
import contextlib
import json
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from aiohttp import web
from support.ports import free_ports
from support.sink_contract import FailingPeer

from bridge.plugins import Place
from sinks.webhook import WebhookSettings

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Got:
    """A request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def envelopes(self) -> list[dict[str, Any]]:
        """The CloudEvents in it, by the rules of the HTTP binding; none if it is another format."""
        kind = self.headers["Content-Type"].lower()
        if kind.startswith("application/cloudevents-batch"):
            return json.loads(self.body)
        if kind.startswith("application/cloudevents"):
            return [json.loads(self.body)]
        return [self._binary(kind)] if "ce-id" in self.headers else []

    def _binary(self, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = {
            name.lower().removeprefix("ce-"): unquote(value, errors="strict")
            for name, value in self.headers.items()
            if name.lower().startswith("ce-")
        }
        found["severitynumber"] = int(found["severitynumber"])
        return {**found, "datacontenttype": kind, "data": json.loads(self.body)}


def says(status: int, text: str = "", **headers: str) -> Answer:
    """Answer with a status; `Retry_After` in *headers* is Retry-After."""

    async def answer(_: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text=text or None, headers=named)

    return answer


def after(released: asyncio.Event, then: Answer | None = None) -> Answer:
    """Be silent until *released*."""

    async def answer(request: web.Request) -> web.StreamResponse:
        await released.wait()
        return await (then or says(204))(request)

    return answer


def raw(data: bytes) -> Answer:
    """Send these bytes, whether they are HTTP or not, and reset the connection."""

    async def answer(request: web.Request) -> web.StreamResponse:
        transport = request.transport
        assert transport is not None
        if data:
            transport.write(data)
            await asyncio.sleep(0.05)
        transport.abort()
        return web.Response()

    return answer


def endless(status: int, written: list[int]) -> Answer:
    """A body that continues until the client disconnects; *written* counts the bytes sent."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status)
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"words without end " * 1000)
                written.append(18_000)
        return response

    return answer


@dataclass
class Receiver:
    """`answers` are given in turn, then `usual`. `taken` are CloudEvents that were answered 2xx."""

    context: ssl.SSLContext | None = None
    port: int = 0
    usual: Answer = field(default_factory=lambda: says(204))
    answers: deque[Answer] = field(default_factory=deque)
    options: Answer = field(default_factory=lambda: says(405))
    got: list[Got] = field(default_factory=list)
    asked: list[Got] = field(default_factory=list)
    taken: list[dict[str, Any]] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    at_once: int = 0
    most_at_once: int = 0
    _going: asyncio.Event = field(default_factory=asyncio.Event)
    _runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        scheme = "http" if self.context is None else "https"
        return f"{scheme}://127.0.0.1:{self.port}/hook"

    def ids(self) -> list[str]:
        return [envelope["id"] for envelope in self.taken]

    async def up(self) -> None:
        self._going.set()
        app = web.Application(client_max_size=4 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, shutdown_timeout=0.05, access_log=None
        )
        await self._runner.setup()
        self.port = self.port or free_ports(1)[0]
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self.context).start()

    async def down(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def stall(self) -> None:
        self._going.clear()

    def release(self) -> None:
        self._going.set()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        # Read first: a server that does not read does not see its client leave either.
        got = Got(request.method, request.path_qs, request.headers, await request.read())
        await self._going.wait()
        if request.method == "OPTIONS":
            self.asked.append(got)
            return await self.options(request)
        self.got.append(got)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._answer(request, got)
        finally:
            self.at_once -= 1

    async def _answer(self, request: web.Request, got: Got) -> web.StreamResponse:
        if self.refused & {envelope["id"] for envelope in got.envelopes}:
            return web.Response(status=400, text="we do not take this one")
        answer = self.answers.popleft() if self.answers else self.usual
        response = await answer(request)
        if 200 <= response.status < 300:
            self.taken += got.envelopes
        return response


@contextlib.asynccontextmanager
async def receiving(context: ssl.SSLContext | None = None, **more: Any) -> AsyncIterator[Receiver]:
    receiver = Receiver(context, **more)
    await receiver.up()
    try:
        yield receiver
    finally:
        receiver.release()
        await receiver.down()


class WebhookPeer(FailingPeer):
    """The receiver, for the suite that every sink passes."""

    def __init__(self, receiver: Receiver, **keys: Any) -> None:
        self.network = receiver
        self.settings = WebhookSettings.model_validate(
            {"type": "webhook", "url": receiver.url, **keys}
        )
        self.place = Place(sink="hook")

    async def received(self) -> list[dict[str, Any]]:
        return list(self.network.taken)

    async def refuse(self, ids: set[str]) -> None:
        self.network.refused |= ids
