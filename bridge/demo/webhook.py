"""The demo's webhook: a pager in this process that rings for requests signed with its secret.

It shares no code with the bridge: it is what a user's own receiver would look like.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

SINK = """\
  pager:
    type: webhook
    url: {url}
    secret: {secret}
    only: {{types: ["*.scheduled.v1", "*.started.v1"]}}
"""


@dataclass(slots=True)
class Pager:
    """A receiver that rings for signed requests."""

    note: Callable[[str], None]
    url: str = ""
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    @property
    def sink(self) -> str:
        """The sink that reaches it, as lines of the configuration."""
        secret = base64.b64encode(self._key).decode()
        return SINK.format(url=self.url, secret=f"whsec_{secret}")

    async def ring(self, request: web.Request) -> web.Response:
        body = await request.read()
        if not self._is_signed(request, body):
            return web.Response(status=401, text="the request is not signed with the right secret")
        self.note(f"the pager rings: {_said(await request.json())}")
        return web.Response(status=204)

    def _is_signed(self, request: web.Request, body: bytes) -> bool:
        """Standard Webhooks, in four lines."""
        parts = (request.headers.get(f"webhook-{name}", "") for name in ("id", "timestamp"))
        content = b"%b.%b." % tuple(part.encode() for part in parts) + body
        good = base64.b64encode(hmac.digest(self._key, content, hashlib.sha256)).decode()
        return f"v1,{good}" in request.headers.get("webhook-signature", "").split()


def _said(envelope: dict[str, Any]) -> str:
    what = envelope["type"].removeprefix("azure.scheduledevents.").removesuffix(".v1")
    data = envelope["data"]
    return f"{data['eventType']} {data['eventId'][:8]} {what}; the signature is valid"


@asynccontextmanager
async def listening(note: Callable[[str], None]) -> AsyncGenerator[Pager]:
    """A pager on a free port, until the demo ends."""
    pager = Pager(note)
    app = web.Application()
    app.router.add_post("/ring", pager.ring)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        pager.url = f"http://127.0.0.1:{runner.addresses[0][1]}/ring"
        yield pager
    finally:
        await runner.cleanup()
