"""Splunk's HTTP Event Collector for the tests, as its documentation describes it."""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TOKEN = "11111111-2222-3333-4444-555555555555"
TEXTS = {
    0: (200, "Success"),
    1: (403, "Token disabled"),
    2: (401, "Token is required"),
    3: (401, "Invalid authorization"),
    4: (403, "Invalid token"),
    5: (400, "No data"),
    6: (400, "Invalid data format"),
    7: (400, "Incorrect index"),
    8: (500, "Internal server error"),
    9: (503, "Server is busy"),
    10: (400, "Data channel is missing"),
    11: (400, "Invalid data channel"),
    12: (400, "Event field is required"),
    13: (400, "Event field cannot be blank"),
    14: (400, "ACK is disabled"),
    15: (400, "Error in handling indexed fields"),
}


@dataclass
class Token:
    enabled: bool = True
    acknowledges: bool = False
    indexes: set[str] | None = None
    """Those that it may write to; None is all."""


@dataclass
class SplunkServer:
    """Accepts events, numbers the requests of each channel, and indexes on request."""

    tokens: dict[str, Token] = field(default_factory=lambda: {TOKEN: Token()})
    url: str = ""
    port: int = 0
    indexed: bool = True
    """Whether accepted events are indexed immediately; otherwise when `index` is called."""
    busy: int | None = None
    """The code of the answer to everything, in the headers of which `more` stands."""
    more: Mapping[str, str] = field(default_factory=dict)
    canned: web.Response | None = None
    refused: set[str] = field(default_factory=set)
    """Ids of CloudEvents that it treats as invalid."""
    numbers: bool = True
    """Whether it says which event of a request is invalid."""
    largest: int = 10 * 1024 * 1024
    events: list[dict[str, Any]] = field(default_factory=list)
    requests: list[tuple[str, Mapping[str, str], bytes]] = field(default_factory=list)
    _acks: dict[str, dict[int, bool]] = field(default_factory=dict)
    _flowing: asyncio.Event = field(default_factory=asyncio.Event)
    _runner: web.AppRunner | None = None
    _context: ssl.SSLContext | None = None

    @property
    def ids(self) -> list[str]:
        return [event["event"]["id"] for event in self.events]

    def asked(self, end: str) -> list[tuple[str, Mapping[str, str], bytes]]:
        return [request for request in self.requests if request[0].endswith(end)]

    async def up(self) -> None:
        self._flowing.set()
        app = web.Application(client_max_size=2**28)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._context)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.url = f"{'https' if self._context else 'http'}://127.0.0.1:{self.port}"

    async def down(self) -> None:
        self._flowing.set()
        if self._runner is not None:
            await self._runner.cleanup()

    def stall(self) -> None:
        self._flowing.clear()

    def release(self) -> None:
        self._flowing.set()

    def index(self) -> None:
        """All that was accepted so far."""
        for known in self._acks.values():
            known.update(dict.fromkeys(known, True))

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        await self._flowing.wait()
        self.requests.append((request.path, request.headers.copy(), body))
        if self.canned is not None:
            return web.Response(
                status=self.canned.status, body=self.canned.body, headers=self.canned.headers
            )
        if self.busy is not None:
            return answer(self.busy, headers=self.more)
        problem = self._authorize(request)
        if problem is not None:
            return answer(problem)
        if request.path.endswith("/services/collector/ack"):
            return self._tell(request, json.loads(body))
        if request.path.endswith("/services/collector/event"):
            return self._take(request, body)
        return web.Response(status=404, text="<html>not found</html>")

    def _authorize(self, request: web.Request) -> int | None:
        scheme, _, word = request.headers.get("Authorization", "").partition(" ")
        if not scheme:
            return 2
        if scheme != "Splunk":
            return 3
        if word not in self.tokens:
            return 4
        return None if self.tokens[word].enabled else 1

    def _token(self, request: web.Request) -> Token:
        return self.tokens[request.headers["Authorization"].partition(" ")[2]]

    def _take(self, request: web.Request, body: bytes) -> web.Response:
        token = self._token(request)
        channel = request.headers.get("X-Splunk-Request-Channel")
        if token.acknowledges and channel is None:
            return answer(10)
        if len(body) > self.largest:
            return web.Response(status=413, text="<html>too large</html>")
        if not body.strip():
            return answer(5)
        found: list[dict[str, Any]] = []
        for number, envelope in enumerate(split(body)):
            problem = self._invalid(envelope, token)
            if problem is not None:
                more: dict[str, Any] = {"invalid-event-number": number} if self.numbers else {}
                return answer(problem, **more)
            found.append(envelope)
        self.events += found
        if not token.acknowledges or channel is None:
            return answer(0)
        known = self._acks.setdefault(channel, {})
        known[len(known)] = self.indexed
        return answer(0, ackId=len(known) - 1)

    def _invalid(self, envelope: Any, token: Token) -> int | None:
        if not isinstance(envelope, dict):
            return 6
        if "event" not in envelope:
            return 12
        if envelope["event"] in ("", {}):
            return 13
        index = envelope.get("index")
        if index is not None and token.indexes is not None and index not in token.indexes:
            return 7
        event = envelope["event"]
        return 6 if isinstance(event, dict) and event.get("id") in self.refused else None

    def _tell(self, request: web.Request, asked: Any) -> web.Response:
        """A receipt is forgotten once it has been returned."""
        if not self._token(request).acknowledges:
            return answer(14)
        channel = request.headers.get("X-Splunk-Request-Channel")
        if channel is None:
            return answer(10)
        known = self._acks.setdefault(channel, {})
        told = {str(number): known.get(number, False) for number in asked["acks"]}
        known.update({int(number): False for number, done in told.items() if done})
        return web.json_response({"acks": told})


def split(body: bytes) -> list[Any]:
    """JSON values one after the other; None for invalid ones."""
    decoder, text, place = json.JSONDecoder(), body.decode(), 0
    found: list[Any] = []
    while place < len(text):
        try:
            value, place = decoder.raw_decode(text, place)
        except ValueError:
            return [*found, None]
        found.append(value)
        while place < len(text) and text[place].isspace():
            place += 1
    return found


def answer(code: int, *, headers: Mapping[str, str] | None = None, **more: Any) -> web.Response:
    status, text = TEXTS[code]
    return web.json_response({"text": text, "code": code, **more}, status=status, headers=headers)


@contextlib.asynccontextmanager
async def splunk_server(context: ssl.SSLContext | None = None) -> AsyncIterator[SplunkServer]:
    server = SplunkServer(_context=context)
    await server.up()
    try:
        yield server
    finally:
        await server.down()
