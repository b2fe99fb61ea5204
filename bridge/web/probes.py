"""The probes: liveness, readiness and metrics."""

from aiohttp import web

from bridge.runtime.status import stuck
from bridge.web.context import CONTEXT
from bridge.web.health.metrics import Moment, families
from bridge.web.health.process import usage
from bridge.web.health.prometheus import CONTENT_TYPE, render

routes = web.RouteTableDef()


@routes.get("/livez")
async def livez(request: web.Request) -> web.Response:
    """An answer proves that the event loop runs; what remains to check is polling."""
    context = request.app[CONTEXT]
    interval = context.runtime.config.source.poll_interval
    why = stuck(context.runtime.status, interval, context.runtime.clock.monotonic())
    body = {"alive": why is None, "why": why}
    return web.json_response(body, status=200 if why is None else 503)


@routes.get("/readyz")
async def readyz(request: web.Request) -> web.Response:
    found = request.app[CONTEXT].readiness()
    return web.json_response(found.as_json(), status=200 if found.ready else 503)


@routes.get("/metrics")
async def metrics(request: web.Request) -> web.Response:
    context = request.app[CONTEXT]
    readings, clock = await context.readings(), context.runtime.clock
    moment = Moment(
        wall=clock.timestamp(),
        monotonic=clock.monotonic(),
        started=context.started,
        config_sha256=context.config_sha256(),
        ready=context.readiness().ready,
        tokens_refused=context.tokens_refused,
        certificates_refused=context.certificates_refused,
        streams=context.streams.count,
        usage=usage(),
    )
    text = render(families(context.runtime, readings, moment))
    return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})
