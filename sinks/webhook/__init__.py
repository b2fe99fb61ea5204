"""CloudEvents posted to a URL, signed if need be; with aiohttp.

Read `settings`, then `sending` (a batch), `asking` (one request), `answers` (what a status means).
`binding`, `urls`, `headers`, `handshake` and `pace` are pure.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from bridge.plugins import Place, Send, SinkPlugin
from sinks.webhook.asking import client
from sinks.webhook.check import check
from sinks.webhook.sending import Session
from sinks.webhook.settings import WebhookSettings

__all__ = ["WebhookSettings", "sink"]


@asynccontextmanager
async def _open(settings: WebhookSettings, place: Place) -> AsyncGenerator[Send]:
    async with client(settings) as http:
        session = Session.begin(settings, place, http)
        if settings.handshake != "off":
            await session.connect()
        yield session.send


sink = SinkPlugin(settings=WebhookSettings, open=_open, check=check)
