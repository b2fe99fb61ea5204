"""A server at the bridge's address that is not a bridge."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def impostor(answer: Callable[[], web.Response]) -> AsyncGenerator[int]:
    """Answer every request with *answer*; yields the port."""

    async def handle(_: web.Request) -> web.Response:
        return answer()

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield site.port
    finally:
        await runner.cleanup()
