"""The OpenAPI document: what the routes are, whole by itself, and what the bridge answers."""

import json
import re

import jsonschema_rs
import pytest
from aiohttp.web import RouteDef
from support.served_bridge import announce, end, kill

from bridge.common import schemas
from bridge.web import server
from bridge.web.access.tokens import needed

EVENT_ID = "602D9444-D2CD-49C7-8624-8643E7171297"
DOCUMENT = json.loads(schemas.read("openapi"))
OPERATIONS = {
    (method.upper(), path): one
    for path, methods in DOCUMENT["paths"].items()
    for method, one in methods.items()
}
ROUTES = {
    (route.method, re.sub(r"\{(\w+):[^}]+\}", r"{\1}", route.path))
    for table in server._ROUTES
    for route in table
    if isinstance(route, RouteDef)
}


def test_the_document_has_every_route_and_every_route_is_in_the_document():
    assert set(OPERATIONS) == ROUTES


def test_every_operation_says_which_scope_it_needs():
    for (method, path), one in OPERATIONS.items():
        public = one["security"] == [{}]
        assert one.get("x-scope") == (None if public else needed(method, path)), (method, path)


def test_every_operation_has_a_name_of_its_own_and_answers_errors_with_problems():
    names = [one["operationId"] for one in OPERATIONS.values()]
    assert len(set(names)) == len(names)
    problem = {"$ref": "#/components/responses/Problem"}
    for place, one in OPERATIONS.items():
        probes = {"200", "503"} if place[1] in {"/livez", "/readyz"} else set()
        errors = {c: a for c, a in one["responses"].items() if c >= "4" and c not in probes}
        assert set(map(str, errors.values())) == {str(problem)}, place


def test_the_document_stands_alone():
    for found in re.findall(r'"\$ref": "([^"]+)"', schemas.read("openapi")):
        place = DOCUMENT
        assert found.startswith("#/")
        for part in found[2:].split("/"):
            place = place[part]


def validator(name):
    root = {"components": DOCUMENT["components"], "$ref": f"#/components/schemas/{name}"}
    return jsonschema_rs.Draft202012Validator(root, validate_formats=True)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/api/v1/status", "Status"),
        (f"/api/v1/events/{EVENT_ID}", "ScheduledEventDetail"),
        ("/api/v1/dead-letters/bus:1", "DeadLetter"),
        ("/api/v1/session", "Session"),
        ("/api/v1/nothing", "Problem"),
    ],
)
async def test_what_the_bridge_answers_is_as_the_document_says(running, path, name):
    (told,) = await announce(running.journal, EVENT_ID)
    await kill(running.journal, "bus", told)
    for _ in range(2):  # a pending event, then a past one
        _, body = await running.http.ask("GET", path)
        assert [str(one.message) for one in validator(name).iter_errors(body)] == []
        if EVENT_ID in (await running.journal.load()).tracked:
            await end(running.journal, EVENT_ID)


async def test_the_bridge_serves_the_document(running):
    assert await running.http.ask("GET", "/api/v1/openapi.json") == (200, DOCUMENT)
