"""Sinks and dead letters over HTTP: their state, and what an operator does about it."""

import json
from typing import NoReturn

from aiohttp import web

from bridge.journal.cursors import backlog, dead_letter, dead_letters
from bridge.runtime.runtime import Runtime
from bridge.web.access.middleware import CALLER
from bridge.web.api import shapes
from bridge.web.context import CONTEXT
from bridge.web.problems import ProblemDetails, not_found

MOST = 1000
routes = web.RouteTableDef()


def _runtime(request: web.Request) -> Runtime:
    return request.app[CONTEXT].runtime


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


def _writable(request: web.Request) -> Runtime:
    runtime = _runtime(request)
    if runtime.journal.trouble is not None:
        raise ProblemDetails(503, "The journal cannot be written, so nothing can be changed now.")
    return runtime


def _no_sink(name: str) -> NoReturn:
    not_found(f"There is no sink {name[:63]!r}; GET /api/v1/sinks lists them.")


def _no_letter(letter_id: str) -> NoReturn:
    not_found(f"There is no dead letter {letter_id[:128]!r}; GET /api/v1/dead-letters lists them.")
