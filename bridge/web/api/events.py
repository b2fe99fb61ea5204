"""Scheduled events over HTTP: pending and past, one with its history, and the stream."""

from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from bridge.core.ids import safe_id
from bridge.core.state import Tracked
from bridge.journal import views
from bridge.journal.store import Store
from bridge.journal.votes import votes_ever
from bridge.runtime.runtime import Runtime
from bridge.web.api import shapes
from bridge.web.context import CONTEXT
from bridge.web.problems import ProblemDetails, not_found
from bridge.web.stream import Cursor, stream

routes = web.RouteTableDef()


def _runtime(request: web.Request) -> Runtime:
    return request.app[CONTEXT].runtime


@routes.get("/api/v1/events")
async def events(request: web.Request) -> web.Response:
    runtime = _runtime(request)
    only_pending = _flag(request, "pending")
    latest, pending = await runtime.journal.run(lambda s: (views.latest(s), views.pending(s)))
    found = shapes.events(latest, pending, runtime.identity.observer, datetime.now(UTC))
    wanted = [one for one in found if one["pending"] or not only_pending]
    return web.json_response({"events": wanted})


@routes.get("/api/v1/events/{eventId:[^/]+}")
async def event(request: web.Request) -> web.Response:
    runtime = _runtime(request)
    given = request.match_info["eventId"]
    key, rows, known = await runtime.journal.run(lambda store: _history(store, given))
    cast = await runtime.journal.run(lambda store: votes_ever(store, given.upper()))
    if not rows and known is None:
        not_found(f"The journal has no scheduled event {given[:128]!r}.")
    told = next((row["cloudevent"] for row in reversed(rows) if _shows_state(row)), None)
    now = datetime.now(UTC)
    body = shapes.event(key, told, known, runtime.identity.observer, now)
    votes = [shapes.vote(one) for one in cast]
    return web.json_response({**body, "votes": votes, "history": shapes.history(rows)})


def _history(store: Store, given: str) -> tuple[str, list[dict[str, Any]], Tracked | None]:
    """Find by EventId in any case, or by the hash that replaces an unusual one."""
    pending = views.pending(store)
    for key in dict.fromkeys((safe_id(given.upper()), safe_id(given))):
        rows = [row for row in views.history(store, key) if "correlationid" in row["cloudevent"]]
        if rows or key in pending:
            return key, rows, pending.get(key)
    return given, [], None


def _shows_state(row: dict[str, Any]) -> bool:
    return "status" in row["cloudevent"]["data"] and "rank" in row["cloudevent"]["data"]


@routes.get("/api/v1/stream", allow_head=False)
async def open_stream(request: web.Request) -> web.StreamResponse:
    context = request.app[CONTEXT]
    refusals = context.runtime.status.refusals if _flag(request, "strays") else None
    return await stream(request, Cursor(context.runtime.journal, refusals), context.streams)


def _flag(request: web.Request, name: str) -> bool:
    value = request.query.get(name, "false").lower()
    if value not in {"true", "false"}:
        raise ProblemDetails(400, f"{name} must be true or false.")
    return value == "true"
