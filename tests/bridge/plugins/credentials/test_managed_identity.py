"""Tokens for the VM's own identity, from a metadata service on loopback."""

import pytest
from aiohttp import web
from pydantic import ValidationError
from support.token_server import identity

from bridge.plugins import ManagedIdentity, Unavailable
from bridge.simulator import Scenario, Simulator


async def test_the_metadata_service_is_asked_as_azure_says(server):
    assert await identity(server.url, client_id="user assigned").token() == "token-1"
    [(request, _)] = server.asked
    assert (request.method, request.path) == ("GET", "/metadata/identity/oauth2/token")
    assert request.headers["Metadata"] == "true"
    assert dict(request.query) == {
        "api-version": "2018-02-01",
        "resource": "https://a.b/",
        "client_id": "user assigned",
    }


async def test_the_simulator_gives_a_token_too():
    async with Simulator(Scenario(strict=True)) as simulator:
        assert (await identity(simulator.endpoint).token()).startswith("simulated.")


def test_a_managed_identity_asks_at_the_well_known_address():
    assert ManagedIdentity(resource="x").endpoint == "http://169.254.169.254"


async def test_the_error_for_a_missing_identity_asks_about_it(server):
    said = {"error": "invalid_request", "error_description": "Identity not found"}
    server.answer = lambda: web.json_response(said, status=400)
    with pytest.raises(Unavailable, match=r"Identity not found\); does this VM have the managed"):
        await identity(server.url).token()


@pytest.mark.parametrize(("header", "wait"), [("7", 7.0), ("soon", None), ("-1", None)])
async def test_the_server_may_say_when_to_retry(server, header, wait):
    server.answer = lambda: web.Response(status=429, headers={"Retry-After": header})
    with pytest.raises(Unavailable, match="is busy") as told:
        await identity(server.url).token()
    assert told.value.retry_after == wait


async def test_a_proxy_of_the_environment_is_not_used(server, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert await identity(server.url).token() == "token-1"


@pytest.mark.parametrize(
    "endpoint",
    ["http://10.0.0.1", "http://metadata.example", "https://127.0.0.1", "http://127.0.0.1/x", "x"],
)
def test_a_remote_metadata_service_is_refused(endpoint):
    with pytest.raises(ValidationError, match="link-local or loopback"):
        ManagedIdentity.model_validate({"resource": "x", "endpoint": endpoint})
