"""An identity provider and a metadata service for the tests, on loopback."""

import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from bridge.plugins import ManagedIdentity, OAuth


def granted(token: str = "token-1", **more: Any) -> web.Response:
    return web.json_response({"access_token": token, "token_type": "Bearer", **more})


@dataclass
class TokenServer:
    """Gives `answer` to every request, and records the requests."""

    answer: Any = granted
    url: str = ""
    asked: list[tuple[web.Request, Mapping[str, Any]]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request, dict(await request.post())))
        made = self.answer()
        return made if isinstance(made, web.StreamResponse) else await made


@contextlib.asynccontextmanager
async def token_server(
    answer: Any = granted, context: ssl.SSLContext | None = None
) -> AsyncIterator[TokenServer]:
    served = TokenServer(answer)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        scheme = "http" if context is None else "https"
        served.url = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
        yield served
    finally:
        await runner.cleanup()


def oauth(url: str, **keys: Any) -> OAuth:
    given = {"token_url": f"{url}/token", "client_id": "seb", "client_secret": "s3cret:/?", **keys}
    return OAuth.model_validate(given)


def identity(url: str, **keys: Any) -> ManagedIdentity:
    return ManagedIdentity.model_validate({"resource": "https://a.b/", "endpoint": url, **keys})
