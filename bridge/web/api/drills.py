"""Drills over HTTP: start, read and stop them."""

from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from pydantic import ValidationError

from bridge.common.errors import Unavailable
from bridge.common.strictjson import decode
from bridge.core.ids import safe_id
from bridge.drills.plan import Plan, complaint
from bridge.drills.report import report, summary
from bridge.drills.runner import Busy, Impossible, ballot, end, start
from bridge.journal import views
from bridge.journal.drills import every, find
from bridge.journal.store import Store
from bridge.journal.votes import votes
from bridge.policy.drill import Drill
from bridge.runtime.runtime import Runtime
from bridge.web.access.middleware import CALLER
from bridge.web.context import CONTEXT
from bridge.web.problems import ProblemDetails, not_found

routes = web.RouteTableDef()
_PATH = "/api/v1/drills"
_ONE = _PATH + "/{eventId:[^/]+}"
_UNWRITABLE = "The journal cannot be written, so no drill can start now."


@routes.get(_PATH)
async def drills(request: web.Request) -> web.Response:
    found = await request.app[CONTEXT].runtime.journal.run(every)
    return web.json_response({"drills": [summary(one) for one in found]})


@routes.post(_PATH)
async def begin(request: web.Request) -> web.Response:
    """Answer 201 once the drill and its announcement are in the journal."""
    runtime, caller = request.app[CONTEXT].runtime, CALLER.get()
    plan = _plan(await request.read())
    try:
        drill = await start(runtime, plan, actor=caller.name, via=caller.via)
    except Busy as error:
        more = {"eventId": error.drill.key, "href": f"{_PATH}/{error.drill.key}"}
        raise ProblemDetails(409, f"{error} Only one can run at a time.", more=more) from None
    except Impossible as error:
        raise ProblemDetails(400, str(error)) from None
    except Unavailable:
        raise ProblemDetails(503, _UNWRITABLE, Retry_After="1") from None
    body = await _report(runtime, drill.key)
    return web.json_response(body, status=201, headers={"Location": f"{_PATH}/{drill.key}"})


@routes.get(_ONE)
async def drill(request: web.Request) -> web.Response:
    return web.json_response(await _report(request.app[CONTEXT].runtime, _key(request)))


@routes.delete(_ONE)
async def cancel(request: web.Request) -> web.Response:
    runtime, caller, key = request.app[CONTEXT].runtime, CALLER.get(), _key(request)
    try:
        ended = await end(runtime, key, actor=caller.name, via=caller.via)
    except Unavailable:
        raise ProblemDetails(503, _UNWRITABLE, Retry_After="1") from None
    if ended is False:
        raise ProblemDetails(409, f"The drill {key[:128]} is over.")
    return web.json_response(await _report(runtime, key))


def _key(request: web.Request) -> str:
    return request.match_info["eventId"].upper()


def _plan(body: bytes) -> Plan:
    try:
        asked = decode(body, unique=True)
    except ValueError as error:
        raise ProblemDetails(400, f"This is not a valid drill: it is not JSON: {error}.") from None
    try:
        return Plan.model_validate(asked)
    except ValidationError as error:
        raise ProblemDetails(
            400, f"This is not a valid drill: {' '.join(complaint(error))}."
        ) from None


async def _report(runtime: Runtime, key: str) -> dict[str, Any]:
    """The report. A running drill shows the current votes; later, those stored when it started."""

    def read(store: Store) -> tuple[Drill | None, Any, Any]:
        known = find(store, key)
        cast = votes(store, key, known.known.life) if known else []
        return known, cast, views.history(store, safe_id(key))

    found, cast, history = await runtime.journal.run(read)
    if found is None or not history:
        not_found(f"The journal has no drill {key[:128]!r}; GET {_PATH} lists them.")
    standing = await ballot(runtime, found, datetime.now(UTC))
    return report(found, standing, cast, history)
