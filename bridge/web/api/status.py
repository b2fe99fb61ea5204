"""The whole bridge at a glance: its parts, its configuration, and what the caller may do."""

import asyncio
from typing import Any

from aiohttp import web

from bridge.common import schemas
from bridge.config import Config, ConfigError, differs
from bridge.drills.report import summary
from bridge.journal.cursors import Backlog
from bridge.journal.drills import under_way
from bridge.web.access.middleware import CALLER
from bridge.web.api import bridge_shapes, shapes
from bridge.web.context import CONTEXT, WebContext
from bridge.web.problems import ProblemDetails

routes = web.RouteTableDef()
NOTHING = Backlog(0, None, 0, 0)
_REJECTED = "The configuration file was not accepted, and nothing has changed"


@routes.get("/api/v1")
async def index(request: web.Request) -> web.Response:
    """Say what is here: every path of this listener."""
    runtime = request.app[CONTEXT].runtime
    found = {
        f"{route.method} {route.resource.canonical}"
        for route in request.app.router.routes()
        if route.resource is not None and route.method not in {"HEAD", "OPTIONS"}
    }
    body = {
        "name": "scheduled-events-bridge",
        "version": runtime.version,
        "vm": runtime.identity.vm_name,
        "paths": sorted(found, key=lambda line: line.split()[::-1]),
    }
    return web.json_response(body)


@routes.get("/api/v1/openapi.json")
async def openapi(_: web.Request) -> web.Response:
    return web.Response(text=schemas.read("openapi"), content_type="application/json")


@routes.get("/api/v1/status")
async def status(request: web.Request) -> web.Response:
    """What the journal knows may be a second old, as in the metrics; the rest is current."""
    context = request.app[CONTEXT]
    runtime, caller = context.runtime, CALLER.get()
    config, now = runtime.config, runtime.clock.monotonic()
    readings, drill = await context.readings(), await runtime.journal.run(under_way)
    body = {
        "version": runtime.version,
        "startedAt": shapes.moment(context.started),
        "now": shapes.moment(runtime.clock.timestamp()),
        "vm": bridge_shapes.vm(runtime.identity.vm_name, runtime.identity.instance),
        "caller": bridge_shapes.caller(caller),
        "access": bridge_shapes.access(config),
        "readiness": context.readiness().as_json(),
        "source": bridge_shapes.source(runtime.status.source, config.source, now),
        "journal": bridge_shapes.journal(
            runtime.journal, config.journal, readings.size, runtime.status
        ),
        "sinks": [
            shapes.sink(name, one, readings.backlogs.get(name, NOTHING))
            for name, one in runtime.status.sinks.items()
        ],
        "approvalSources": bridge_shapes.approval_sources(runtime.status.listeners, now),
        "approvals": bridge_shapes.approval_rules(config.approvals),
        "pending": {"events": readings.pending, "drills": int(drill is not None)},
        "drill": summary(drill) if drill else None,
        "configuration": await _configuration(context, config),
    }
    return web.json_response(body)


async def _configuration(context: WebContext, config: Config) -> dict[str, Any]:
    runtime, problem, changed = context.runtime, None, None
    try:
        changed = await asyncio.to_thread(differs, config)
    except ConfigError as error:
        problem = str(error)
    return {
        "file": str(config.file) if config.file else None,
        "sha256": context.config_sha256(),
        "loadedAt": shapes.moment(context.wall(runtime.status.configured)),
        "differs": changed,
        "fileError": problem,
        "reload": runtime.status.reload and bridge_shapes.reload(runtime.status.reload),
        "reloadsFailed": runtime.status.reloads_failed,
    }


@routes.get("/api/v1/sources")
async def sources(request: web.Request) -> web.Response:
    """The approval sources; the source of scheduled events is in the status."""
    runtime = request.app[CONTEXT].runtime
    told = bridge_shapes.approval_sources(runtime.status.listeners, runtime.clock.monotonic())
    return web.json_response({"approvalSources": told})


@routes.post("/api/v1/reload")
async def reload(request: web.Request) -> web.Response:
    """Read the file again: all of it takes effect, or nothing does."""
    runtime, caller = request.app[CONTEXT].runtime, CALLER.get()
    if runtime.reload is None:
        raise ProblemDetails(503, "The bridge is starting; try again.", Retry_After="1")
    done = await runtime.reload(caller.name, caller.via)
    if done.outcome == "rejected":
        sentence = f"{_REJECTED}: {'; '.join(done.errors)}"
        raise ProblemDetails(422, sentence, more={"errors": list(done.errors)})
    return web.json_response(
        bridge_shapes.reload(done), status=200 if done.outcome == "applied" else 202
    )
