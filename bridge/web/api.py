"""The API for programs and for `seb`: scheduled events, sinks, dead letters and the stream."""

import json
from datetime import UTC, datetime
from typing import Any, NoReturn

from aiohttp import web

from bridge.core.ids import safe_id
from bridge.core.state import Tracked
from bridge.journal import views
from bridge.journal.cursors import backlog, dead_letter, dead_letters
from bridge.journal.store import Store
from bridge.journal.votes import said_by, votes_ever
from bridge.runtime.runtime import Runtime
from bridge.web import shapes
from bridge.web.access.middleware import CALLER
from bridge.web.context import CONTEXT
from bridge.web.problems import ProblemDetails, not_found
from bridge.web.stream import Cursor, stream

MOST = 1000
routes = web.RouteTableDef()
_PATHS = (
    "GET /livez",
    "GET /readyz",
    "GET /metrics",
    "GET /api/v1/events",
    "GET /api/v1/events/{eventId}",
    "GET /api/v1/sinks",
    "POST /api/v1/sinks/{name}/replay",
    "POST /api/v1/sinks/{name}/resume",
    "GET /api/v1/dead-letters",
    "GET /api/v1/dead-letters/{id}",
    "POST /api/v1/dead-letters/{id}/replay",
    "DELETE /api/v1/dead-letters/{id}",
    "GET /api/v1/approvals",
    "POST /api/v1/approvals",
    "GET /api/v1/approvals/{approvalId}",
    "GET /api/v1/drills",
    "POST /api/v1/drills",
    "GET /api/v1/drills/{eventId}",
    "DELETE /api/v1/drills/{eventId}",
    "GET /api/v1/stream",
)


def _runtime(request: web.Request) -> Runtime:
    return request.app[CONTEXT].runtime


@routes.get("/")
async def index(request: web.Request) -> web.Response:
    runtime = _runtime(request)
    return web.json_response(
        {
            "name": "scheduled-events-bridge",
            "version": runtime.version,
            "vm": runtime.identity.vm_name,
            "paths": _PATHS,
        }
    )


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


@routes.get("/api/v1/sinks")
async def sinks(request: web.Request) -> web.Response:
    runtime = _runtime(request)
    known = dict(runtime.status.sinks)
    found = await runtime.journal.run(lambda store: {name: backlog(store, name) for name in known})
    told = [shapes.sink(name, status, found[name]) for name, status in known.items()]
    return web.json_response({"sinks": told})


@routes.post("/api/v1/sinks/{name}/replay")
async def replay_sink(request: web.Request) -> web.Response:
    runtime, name = _writable(request), request.match_info["name"]
    caller = CALLER.get()
    count = await runtime.replay_sink(name, actor=caller.name, via=caller.via)
    if count is None:
        _no_sink(name)
    return web.json_response({"sink": name, "cloudEvents": count}, status=202)


@routes.post("/api/v1/sinks/{name}/resume")
async def resume_sink(request: web.Request) -> web.Response:
    """Resume a sink. This only changes memory, so it works while the journal cannot be written."""
    name, caller = request.match_info["name"], CALLER.get()
    had = await _runtime(request).resume_sink(name, actor=caller.name, via=caller.via)
    if had is None:
        _no_sink(name)
    return web.json_response({"sink": name, "resumed": had}, status=202)


@routes.get("/api/v1/dead-letters")
async def letters(request: web.Request) -> web.Response:
    runtime, sink = _runtime(request), request.query.get("sink")
    found = await runtime.journal.run(lambda store: dead_letters(store, sink, MOST + 1))
    body = {
        "deadLetters": [shapes.dead_letter(letter) for letter in found[:MOST]],
        "more": len(found) > MOST,
    }
    return web.json_response(body)


@routes.get("/api/v1/dead-letters/{id}")
async def letter(request: web.Request) -> web.Response:
    letter_id = request.match_info["id"]
    found = await _runtime(request).journal.run(lambda store: dead_letter(store, letter_id))
    if found is None:
        _no_letter(letter_id)
    return web.json_response({**shapes.dead_letter(found), "cloudevent": json.loads(found.body)})


@routes.post("/api/v1/dead-letters/{id}/replay")
async def replay_letter(request: web.Request) -> web.Response:
    runtime, letter_id = _writable(request), request.match_info["id"]
    caller = CALLER.get()
    if not await runtime.replay(letter_id, actor=caller.name, via=caller.via):
        _no_letter(letter_id)
    return web.json_response({"id": letter_id, "outcome": "replayed"}, status=202)


@routes.delete("/api/v1/dead-letters/{id}")
async def drop_letter(request: web.Request) -> web.Response:
    runtime, letter_id = _writable(request), request.match_info["id"]
    caller = CALLER.get()
    if not await runtime.drop(letter_id, actor=caller.name, via=caller.via):
        _no_letter(letter_id)
    return web.json_response({"id": letter_id, "outcome": "dropped"})


@routes.get("/api/v1/approvals/{approvalId:.+}")
async def approval(request: web.Request) -> web.Response:
    """One approval. Its id may be a place in a log, such as topic/partition/offset."""
    runtime, given = _runtime(request), request.match_info["approvalId"]
    cast, told = await runtime.journal.run(
        lambda store: (said_by(store, given), views.outcomes(store, given))
    )
    kept = [one.cloudevent.envelope for one in reversed(runtime.status.refusals.latest())]
    told += [one for one in kept if one["data"]["approvalId"] == given]
    if not cast and not told:
        not_found(f"The journal has no approval {given[:128]!r} that counted or was answered.")
    body = {"approvalId": given, "votes": [shapes.vote(one) for one in cast], "outcomes": told}
    return web.json_response(body)


@routes.get("/api/v1/stream", allow_head=False)
async def open_stream(request: web.Request) -> web.StreamResponse:
    context = request.app[CONTEXT]
    refusals = context.runtime.status.refusals if _flag(request, "strays") else None
    return await stream(request, Cursor(context.runtime.journal, refusals), context.streams)


def _writable(request: web.Request) -> Runtime:
    runtime = _runtime(request)
    if runtime.journal.trouble is not None:
        raise ProblemDetails(503, "The journal cannot be written, so nothing can be changed now.")
    return runtime


def _no_sink(name: str) -> NoReturn:
    not_found(f"There is no sink {name[:63]!r}; GET /api/v1/sinks lists them.")


def _no_letter(letter_id: str) -> NoReturn:
    not_found(f"There is no dead letter {letter_id[:128]!r}; GET /api/v1/dead-letters lists them.")


def _flag(request: web.Request, name: str) -> bool:
    value = request.query.get(name, "false").lower()
    if value not in {"true", "false"}:
        raise ProblemDetails(400, f"{name} must be true or false.")
    return value == "true"
