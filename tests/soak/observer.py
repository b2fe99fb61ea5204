"""Notes what the metadata service shows to each bridge, and what each bridge asks it to start.

It stands in for the simulator's handler of requests, and must be entered before the simulator.
"""

import contextvars
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web
from soak.bridges import Bridge
from soak.ledger import Ledger, Look, Post
from support.faulty_bridge import replace

from bridge.core.ids import digest
from bridge.core.model import Document, ScheduledEvent
from bridge.simulator.endpoint.server import ServerView
from bridge.simulator.world.world import World

Json = dict[str, Any]
PROMPT = 2.0
"""An answer that takes longer may have come too late for the bridge."""
_LARGEST = 1_000_000
_shown: contextvars.ContextVar[list[Document]] = contextvars.ContextVar("shown")


@dataclass
class Observer:
    """Writes looks and POSTs into the ledger, as soon as it knows whose they are."""

    ledger: Ledger
    bridges: Mapping[str, Bridge] = field(default_factory=dict)
    now: Callable[[], float] = lambda: 0.0
    _handle: Any = ServerView.handle

    def __enter__(self) -> Self:
        async def observed(view: ServerView, http: web.Request) -> web.StreamResponse:
            return await self._observed(view, http)

        replace(ServerView, "handle", observed)
        return self

    def __exit__(self, *_: object) -> None:
        replace(ServerView, "handle", self._handle)

    def watch(self, world: World, bridges: Mapping[str, Bridge], now: Callable[[], float]) -> None:
        answer = world.document

        def document() -> Document:
            found = answer()
            _shown.get([]).append(found)
            return found

        replace(world, "document", document)
        self.bridges, self.now = bridges, now

    async def _observed(self, view: ServerView, http: web.Request) -> web.StreamResponse:
        vm = view._vm.name
        if not http.path.lower().startswith("/metadata/scheduledevents") or not self.bridges:
            return await self._answer(view, http)
        if http.method == "POST":
            self._note_post(vm, await http.read())
            return await self._answer(view, http)
        return await self._look(view, http, vm)

    async def _answer(self, view: ServerView, http: web.Request) -> web.StreamResponse:
        response: web.StreamResponse = await self._handle(view, http)
        return response

    async def _look(self, view: ServerView, http: web.Request, vm: str) -> web.StreamResponse:
        """Its place in the ledger is that of the question, whenever the answer leaves."""
        at, number = self.now(), self.bridges[vm].number
        place, shown = len(self.ledger.looks), list[Document]()
        self.ledger.looks.append(Look(vm, number, at, clean=False, document=[]))
        _shown.set(shown)
        response = await self._answer(view, http)
        clean = self.now() - at < PROMPT and is_whole(response) and http.transport is not None
        if shown:
            seen = [_facts(event) for event in shown[-1].events if vm in event.resources]
            self.ledger.looks[place] = Look(vm, number, at, clean=clean, document=seen)
        return response

    def _note_post(self, vm: str, body: bytes) -> None:
        ids = [each["EventId"].upper() for each in json.loads(body)["StartRequests"]]
        journals = {name: self.bridges[vm].about(name) for name in ids}
        self.ledger.posts.append(Post(vm, self.now(), journals))


def is_whole(response: web.StreamResponse) -> bool:
    """Whether it is a document, undamaged."""
    body = response.body if isinstance(response, web.Response) else None
    if response.status != 200 or not isinstance(body, bytes) or not 0 < len(body) <= _LARGEST:
        return False
    try:
        found = json.loads(body)
    except ValueError:
        return False
    return isinstance(found, dict) and isinstance(found.get("Events"), list)


def _facts(event: ScheduledEvent) -> Json:
    return {"key": event.key, "status": event.status, "state": digest(event)}
