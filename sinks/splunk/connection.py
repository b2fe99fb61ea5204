"""Requests to the HTTP Event Collector: one at a time, of bounded size, never redirected."""

import json
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID, uuid5

import aiohttp
from yarl import URL

from bridge.plugins import TLS, Place, Unavailable, read_secret
from sinks import _http
from sinks.splunk.errors import CollectorResponse, Outcome, indexed, judge, takes_token, unanswered
from sinks.splunk.settings import SplunkSettings

LARGEST_ANSWER = 256 * 1024
_CHANNELS = UUID("9c8bd5d7-2a5b-5b3e-9d1f-6e0b6c6f1d52")
_SYSTEM = TLS()
_UNUSED_RECEIPT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Collector:
    """Its methods raise `Unavailable` when there is no usable answer."""

    settings: SplunkSettings
    channel: str
    _http: aiohttp.ClientSession = field(repr=False)

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: SplunkSettings, place: Place) -> AsyncGenerator[Self]:
        """Has no connection before the first request."""
        async with _http.client(1) as http:
            yield cls(settings, name_channel(place), http)

    async def post(self, events: Sequence[bytes]) -> Outcome:
        """Send envelopes one after the other, as the collector expects them: not an array."""
        token = self._token()
        return judge(await self._ask("event", token, b"".join(events)), token)

    async def settled(self, receipts: Sequence[int]) -> set[int]:
        """Which receipts are indexed. The collector forgets a receipt once it has reported it."""
        token = self._token()
        body = json.dumps({"acks": list(receipts)}).encode()
        return indexed(await self._ask("ack", token, body), token)

    async def look(self) -> None:
        """Check that the collector can be reached, and its certificate."""
        problem = await _http.look(self.settings.url, self._context(), self.settings.proxy)
        if problem is not None:
            raise Unavailable(f"{self.settings.url}: {problem}")

    async def admit(self) -> None:
        """Check the token, with a request that has no event."""
        token = self._token()
        takes_token(await self._ask("event", token, b""), token)

    async def acknowledge(self) -> None:
        """Check whether the token gives receipts, by asking for one that does not exist."""
        await self.settled([_UNUSED_RECEIPT])

    def _token(self) -> str:
        token = read_secret(self.settings.token, "token")
        if not token.isascii() or not token.isprintable():
            raise Unavailable("token contains characters that are not allowed in a token")
        return token

    def _context(self) -> ssl.SSLContext | None:
        if not self.settings.url.startswith("https:"):
            return None
        return (self.settings.tls or _SYSTEM).context()

    async def _ask(self, endpoint: str, token: str, body: bytes) -> CollectorResponse:
        settings = self.settings
        headers = {"Authorization": f"Splunk {token}", "X-Splunk-Request-Channel": self.channel}
        headers["Content-Type"] = "application/json; charset=utf-8"
        try:
            async with self._http.post(
                URL(settings.endpoint(endpoint), encoded=True),
                data=body,
                headers=headers,
                allow_redirects=False,
                ssl=self._context() or True,
                proxy=settings.proxy,
            ) as response:
                return await _heard(response)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise unanswered(error, settings.url) from None


def name_channel(place: Place) -> str:
    """The same after a restart, and another for each VM and sink."""
    vm = place.names.get("vm_id") or place.names.get("vm_name") or ""
    return str(uuid5(_CHANNELS, f"{vm}/{place.sink}"))


async def _heard(response: aiohttp.ClientResponse) -> CollectorResponse:
    body = bytearray()
    async for part in response.content.iter_chunked(LARGEST_ANSWER):
        body += part
        if len(body) > LARGEST_ANSWER:
            response.close()
            break
    retry_after = response.headers.get("Retry-After")
    return CollectorResponse(response.status, _object(body), retry_after)


def _object(body: bytes | bytearray) -> dict[str, Any]:
    """The JSON object in an answer; an empty one if there is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
