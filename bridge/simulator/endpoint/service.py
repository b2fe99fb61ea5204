"""The metadata service without HTTP: one request of one VM in, one answer out."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bridge.simulator.endpoint.instance import (
    TOKEN_VERSIONS,
    VERSIONS,
    vm_id,
    write_instance,
    write_token,
)
from bridge.simulator.endpoint.wire import (
    UNDERSCORED,
    WireResponse,
    as_json,
    error,
    read_start_requests,
    write_document,
)
from bridge.simulator.world.building_blocks import VM
from bridge.simulator.world.world import World

_ALLOWED = {"scheduledevents": ("GET", "POST")}
_PLACES = {
    "/metadata/scheduledevents": "scheduledevents",
    "/metadata/instance": "instance",
    "/metadata/versions": "versions",
    "/metadata/identity/oauth2/token": "identity",
}


@dataclass(frozen=True, slots=True)
class Request:
    """The relevant parts of a request. Header names are in lower case.

    `spoilt_by` is the kind of fault that will hit its answer, for the truth.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...]
    headers: dict[str, str]
    body: bytes = b""
    spoilt_by: str | None = None

    @property
    def category(self) -> str | None:
        """Which part of the service is requested; the case of paths does not matter."""
        path = self.path.lower().rstrip("/")
        if path.startswith("/metadata/instance/"):
            return "instance"
        return _PLACES.get(path)

    def parameter(self, name: str) -> str:
        return next((value for key, value in self.query if key.lower() == name), "")

    @property
    def api_version(self) -> str:
        return self.parameter("api-version")


def objection(world: World, request: Request) -> WireResponse | None:
    """Azure's reason to refuse this request, whatever it asks for; None if there is none."""
    lenient = (request.category, request.method) == ("scheduledevents", "POST")
    lenient = lenient and request.api_version == UNDERSCORED
    if request.headers.get("metadata", "").lower() != "true" and not lenient:
        return _bad(request, "Required metadata header not specified")
    if "x-forwarded-for" in request.headers:
        return _bad(request, "X-Forwarded-For is not allowed")
    names = [name.lower() for name, _ in request.query]
    if len(set(names)) < len(names):
        return _bad(request, "A query parameter is given twice")
    if request.category is None:
        return error(404, "Not found")
    return _version_objection(world, request) or _method_objection(request)


def _bad(request: Request, why: str, **more: Any) -> WireResponse:
    if request.category == "identity":
        return error(400, "invalid_request", error_description=why, **more)
    return error(400, f"Bad request. {why}", **more)


def _version_objection(world: World, request: Request) -> WireResponse | None:
    known = {
        "scheduledevents": tuple(sorted(world.scenario.api_versions)),
        "instance": VERSIONS,
        "identity": TOKEN_VERSIONS,
    }.get(request.category or "")
    if known is None or request.api_version in known:
        return None
    what = "is invalid" if request.api_version else "was not specified in the request"
    newest = list(reversed(known[-3:]))
    return _bad(request, f"api-version {what}", **{"newest-versions": newest})


def _method_objection(request: Request) -> WireResponse | None:
    allowed = _ALLOWED.get(request.category or "", ("GET",))
    if request.method in allowed:
        return None
    refusal = error(405, f"Method {request.method} is not allowed")
    return WireResponse(405, refusal.body, headers={"Allow": ", ".join(allowed)})


def respond(world: World, vm: VM, request: Request) -> WireResponse:
    """The answer to a request without objection."""
    if request.category == "instance":
        return _instance(world, vm, request)
    if request.category == "versions":
        return as_json({"apiVersions": sorted({*VERSIONS, *world.scenario.api_versions})})
    if request.category == "identity":
        return _token(world, vm, request)
    if request.method == "POST":
        return approve(world, vm, request)
    return as_json(write_document(world.document(), request.api_version))


def approve(world: World, vm: VM, request: Request) -> WireResponse:
    """Accept an approval, or refuse it with a reason; the truth records both."""
    facts = approval_facts(vm, request)
    try:
        ids, incarnation = read_start_requests(request.body)
    except ValueError as malformed:
        note_approval(world, None, **facts, status=400)
        return error(400, f"Bad request. {malformed}")
    known = [event_id for event_id in ids if event_id.upper() in world.entries]
    refusal = _incarnation_objection(world, request, incarnation)
    refusal = refusal or _unknown_objection(world, len(ids) - len(known))
    if refusal is None:
        world.approve(known, **facts, status=200)
        return WireResponse()
    note_approval(world, ids, **facts, status=refusal.status)
    return refusal


def _unknown_objection(world: World, unknown: int) -> WireResponse | None:
    """Refuse the whole request for one unknown EventId, unless the scenario accepts it with 200."""
    status = world.scenario.approve_unknown
    if not unknown or status == 200:
        return None
    return error(status, "Bad request. An EventId is unknown")


def approval_facts(vm: VM, request: Request) -> dict[str, Any]:
    return {
        "via": "POST",
        "vm": vm.name,
        "apiVersion": request.api_version,
        "fault": request.spoilt_by,
    }


def note_approval(world: World, ids: Iterable[str] | None, **facts: Any) -> None:
    """Record an approval that changed nothing."""
    written = None if ids is None else [event_id.upper() for event_id in ids]
    world.truth.record(world.clock(), "approval", eventIds=written, released=[], **facts)


def _incarnation_objection(world: World, request: Request, given: object) -> WireResponse | None:
    if request.api_version != UNDERSCORED:
        return None
    if given is None:
        return error(400, "Bad request. DocumentIncarnation is missing")
    status = world.scenario.approve_stale
    if status != 200 and str(given) != str(world.incarnation):
        return error(status, "DocumentIncarnation is not the current one")
    return None


def _instance(world: World, vm: VM, request: Request) -> WireResponse:
    """All of it, or the part at the path, as JSON or, for a single value, as text."""
    version = request.api_version
    value: Any = write_instance(world.scenario, vm, seed=world.seed, api_version=version)
    for part in request.path.strip("/").split("/")[2:]:
        names = {name.lower(): name for name in value} if isinstance(value, dict) else {}
        if part.lower() not in names:
            return error(404, "Not found")
        value = value[names[part.lower()]]
    if request.parameter("format").lower() == "text" and isinstance(value, str):
        return WireResponse(body=value.encode(), content_type="text/plain")
    return as_json(value)


def _token(world: World, vm: VM, request: Request) -> WireResponse:
    resource = request.parameter("resource")
    if not resource:
        return _bad(request, "Required query parameter 'resource' is missing")
    client = request.parameter("client_id") or vm_id(world.scenario, vm, world.seed)
    lifetime = world.scenario.token_lifetime / world.speed
    return as_json(write_token(resource, client, now=world.clock(), lifetime=lifetime))
