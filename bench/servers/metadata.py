"""The metadata endpoint: it serves a document, and knows when it answered whom."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from aiohttp import web

EVENTS = "/metadata/scheduledevents"
VM = "vm-0"
_LONGEST = 8.0
"""Clients wait 10 seconds for an answer."""


def event(number: int, status: str = "Scheduled", **more: Any) -> dict[str, Any]:
    """A scheduled event for this VM, about as large as Azure's."""
    at = datetime.now(UTC) + timedelta(hours=1)
    return {
        "EventId": f"602D9444-D2CD-49C7-8624-{number:012X}",
        "EventStatus": status,
        "EventType": "Reboot",
        "ResourceType": "VirtualMachine",
        "Resources": [VM],
        "NotBefore": "" if status == "Started" else format_datetime(at, usegmt=True),
        "Description": "Virtual machine is being restarted as requested by authorized user.",
        "EventSource": "User",
        "DurationInSeconds": -1,
        **more,
    }


@dataclass(slots=True)
class Endpoint:
    """With `holding`, a request waits for a document that was not served before, up to 8 seconds.

    That is how a measurement begins with an answer, whatever the poll interval is.
    """

    url: str = ""
    holding: bool = False
    answered: float = 0.0
    """When the present document was first served."""
    polls: int = 0
    waiting: int = 0
    """How many requests are held."""
    posts: list[tuple[float, list[str]]] = field(default_factory=list)
    """When which EventIds were approved."""
    on_poll: Callable[[], None] = lambda: None
    _body: bytes = b""
    _incarnation: int = 0
    _served: int = 0
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Answer what is held."""
        self.holding = False
        self._changed.set()

    def serve(self, events: Iterable[Mapping[str, Any]]) -> None:
        self._incarnation += 1
        document = {"DocumentIncarnation": self._incarnation, "Events": list(events)}
        self._body = json.dumps(document).encode()
        self._changed.set()
        self._changed = asyncio.Event()

    async def asked(self, times: int) -> None:
        """Wait until there were this many polls in all."""
        while self.polls < times:
            await asyncio.sleep(0.005)

    async def events(self, _: web.Request) -> web.Response:
        self.polls += 1
        self.on_poll()
        if self.holding and self._served == self._incarnation:
            await self._hold()
        if self._served != self._incarnation:
            self._served, self.answered = self._incarnation, time.perf_counter()
        return web.Response(body=self._body, content_type="application/json")

    async def _hold(self) -> None:
        self.waiting += 1
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST):
                await self._changed.wait()
        self.waiting -= 1

    async def approve(self, request: web.Request) -> web.Response:
        asked = (await request.json())["StartRequests"]
        self.posts.append((time.perf_counter(), [each["EventId"] for each in asked]))
        return web.Response()

    async def instance(self, _: web.Request) -> web.Response:
        return web.json_response({"compute": {"name": VM, "vmId": "bench"}})


@contextlib.asynccontextmanager
async def endpoint() -> AsyncGenerator[Endpoint]:
    """On a free port of loopback, with an empty document."""
    made = Endpoint()
    made.serve([])
    app = web.Application()
    app.router.add_get(EVENTS, made.events)
    app.router.add_post(EVENTS, made.approve)
    app.router.add_get("/metadata/instance", made.instance)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        made.release()
        await asyncio.sleep(0)
        await runner.cleanup()
