"""One request to the receiver, with the current URL, TLS context and credentials."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from yarl import URL

from bridge.plugins import TLS, Place, Unavailable
from sinks import _http
from sinks.webhook.credentials import Credentials, present
from sinks.webhook.errors import Response, unanswered
from sinks.webhook.settings import WebhookSettings
from sinks.webhook.urls import Target

LARGEST_ANSWER = 64 * 1024
_BODY_WITHIN = 2.0
"""Seconds to wait for the rest of an answer after its status."""
_PLAIN = TLS()


def client(settings: WebhookSettings) -> aiohttp.ClientSession:
    """It does not decompress answers."""
    headers = {"Accept-Encoding": "identity"}
    return _http.client(settings.concurrency, headers, auto_decompress=False)


@dataclass(frozen=True, slots=True)
class Line:
    """How to reach the receiver right now."""

    target: Target
    credentials: Credentials = field(repr=False)
    _url: URL = field(repr=False)
    _http: aiohttp.ClientSession = field(repr=False)
    _options: Mapping[str, Any] = field(repr=False)
    _anonymous: bool

    @property
    def hidden(self) -> tuple[str, ...]:
        return (*self.target.hidden, *self.credentials.hidden)

    async def look(self) -> None:
        """Raises `Unavailable` when the receiver cannot be reached, or its certificate is wrong."""
        context = self._options["ssl"] if self.target.secure else None
        problem = await _http.look(self.target.url, context, self._options.get("proxy"))
        if problem is not None:
            raise Unavailable(f"{self.target.origin}: {problem}")

    async def ask(self, method: str, headers: Mapping[str, str], body: bytes = b"") -> Response:
        """Raises `Unavailable` when there is no answer. `errors` says what an answer means."""
        try:
            async with self._http.request(
                method,
                self._url,
                data=body or None,
                headers={**self.credentials.headers, **headers},
                allow_redirects=False,
                **self._options,
            ) as response:
                return await _heard(response)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise unanswered(error, self.target.origin, anonymous=self._anonymous) from None


async def dial(http: aiohttp.ClientSession, settings: WebhookSettings, place: Place) -> Line:
    """Files that changed take effect here. Raises `Unavailable` when one of them cannot be used."""
    target = settings.target(place)
    options: dict[str, Any] = {"ssl": (settings.tls or _PLAIN).context() if target.secure else True}
    credentials = await present(settings, target)
    if settings.proxy is not None:
        options["proxy"] = settings.proxy.url
        # Through a tunnel the proxy sees its own headers only; without one it sees all headers.
        if target.secure:
            options["proxy_headers"] = dict(credentials.for_proxy)
        else:
            credentials = credentials.merged()
    anonymous = target.secure and (settings.tls is None or settings.tls.certificate is None)
    url = URL(target.url, encoded=True)
    return Line(target, credentials, url, http, options, anonymous)


async def _heard(response: aiohttp.ClientResponse) -> Response:
    """The status decides; an endless or truncated body does not change it."""
    body = b"" if response.content.at_eof() else await _read(response)
    packed = "Content-Encoding" in response.headers
    return Response(
        response.status,
        b"" if packed else body,
        retry_after=response.headers.get("Retry-After"),
        date=response.headers.get("Date"),
        location=response.headers.get("Location"),
        allowed_origin=response.headers.get("WebHook-Allowed-Origin"),
        allowed_rate=response.headers.get("WebHook-Allowed-Rate"),
    )


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    with suppress(aiohttp.ClientError, OSError):
        async with asyncio.timeout(_BODY_WITHIN):
            while len(body) < LARGEST_ANSWER:
                chunk = await response.content.readany()
                if not chunk:
                    break
                body += chunk
    if not response.content.is_eof():
        response.close()
    return bytes(body[:LARGEST_ANSWER])
