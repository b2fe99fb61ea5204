"""The control API: inspect and change the simulated world, over HTTP on loopback."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web
from pydantic import ValidationError

from bridge.simulator.world.building_blocks import NewEvent, Reschedule, Update
from bridge.simulator.world.entries import Entry
from bridge.simulator.world.faults import Fault, LiveFault
from bridge.simulator.world.rules import Refused, Unknown
from bridge.simulator.world.scenario import sentence
from bridge.simulator.world.world import World

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Control:
    """The handlers under /control/. `state` returns what only the running simulator knows."""

    def __init__(self, world: World, state: Callable[[], dict[str, Any]]) -> None:
        self._world = world
        self._state = state

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/control/state", self._show),
            web.get("/control/truth", self._truth),
            web.get("/control/approvals", self._approvals),
            web.post("/control/events", self._create),
            web.post("/control/events/{event}/{action}", self._act),
            web.get("/control/faults", self._list_faults),
            web.post("/control/faults", self._add_fault),
            web.delete("/control/faults", self._clear_faults),
            web.delete("/control/faults/{name}", self._clear_faults),
            web.post("/control/disable", self._disable),
        ]

    async def _show(self, _: web.Request) -> web.Response:
        self._world.advance()
        entries = self._world.entries.values()
        return web.json_response(
            {
                **self._state(),
                "documentIncarnation": self._world.incarnation,
                "enabled": self._world.enabling.on,
                "events": [entry.facts() for entry in entries],
                "faults": [_describe(live) for live in self._world.faults.live],
            }
        )

    async def _truth(self, http: web.Request) -> web.Response:
        after = http.query.get("after", "0")
        if not after.isdecimal():
            raise Refused(f"after must be the seq of a record, a number, not {after!r}")
        self._world.advance()
        return web.json_response(self._world.truth.records[int(after) :])

    async def _approvals(self, _: web.Request) -> web.Response:
        records = self._world.truth.records
        return web.json_response([r for r in records if r["what"] == "approval"])

    async def _create(self, http: web.Request) -> web.Response:
        plan = NewEvent.model_validate(await _json(http))
        self._world.advance()
        return web.json_response(self._world.create(plan).facts(), status=201)

    async def _act(self, http: web.Request) -> web.Response:
        event, action = http.match_info["event"], http.match_info["action"]
        keys = {**await _json(http), "event": event}
        self._world.advance()
        simple: dict[str, Callable[[str], Entry]] = {
            "cancel": self._world.cancel,
            "start": self._world.start,
            "complete": self._world.complete,
        }
        if action in simple:
            entry = simple[action](event)
        elif action == "reschedule":
            entry = self._world.move(Reschedule.model_validate(keys))
        elif action == "update":
            entry = self._world.change(Update.model_validate(keys))
        elif action == "approve":
            entry = self._world.find(event)
            self._world.approve([event])
        else:
            actions = ", ".join([*simple, "reschedule", "update", "approve"])
            raise Unknown(f"there is no action {action!r}; choose from {actions}")
        return web.json_response(entry.facts())

    async def _list_faults(self, _: web.Request) -> web.Response:
        return web.json_response([_describe(live) for live in self._world.faults.live])

    async def _add_fault(self, http: web.Request) -> web.Response:
        fault = Fault.model_validate(await _json(http))
        return web.json_response(_describe(self._world.fault(fault)), status=201)

    async def _clear_faults(self, http: web.Request) -> web.Response:
        cleared = self._world.clear_faults(http.match_info.get("name"))
        return web.json_response({"cleared": cleared})

    async def _disable(self, _: web.Request) -> web.Response:
        self._world.disable()
        return web.json_response({"enabled": self._world.enabling.on})


@web.middleware
async def explain(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn a refusal into a status and one sentence."""
    try:
        return await handler(request)
    except ValidationError as problem:
        return web.json_response({"error": sentence(problem)}, status=400)
    except Unknown as unknown:
        return web.json_response({"error": str(unknown)}, status=404)
    except Refused as refusal:
        return web.json_response({"error": str(refusal)}, status=409)


async def _json(http: web.Request) -> dict[str, Any]:
    body = await http.read()
    try:
        payload = json.loads(body or b"{}")
    except ValueError:
        payload = None
    if not isinstance(payload, dict):
        raise Refused("the body is not a JSON object")
    return payload


def _describe(live: LiveFault) -> dict[str, Any]:
    given = live.fault.model_dump(by_alias=True, exclude_unset=True)
    return {**given, "name": live.name, "left": live.left}
