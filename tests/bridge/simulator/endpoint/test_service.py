"""What Azure enforces, over real HTTP."""

import pytest
from support.simulator_tools import HEADERS, events_url, get_document, post_approval

from bridge.simulator import Scenario, Simulator
from bridge.simulator.world.scenario import API_VERSIONS

PATHS = (
    "/metadata/scheduledevents?api-version=2020-07-01",
    "/metadata/instance?api-version=2021-02-01",
    "/metadata/versions",
    "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://x.example/",
)


@pytest.fixture
async def simulator():
    async with Simulator() as simulator:
        yield simulator


async def ask(http, url, method="GET", headers=HEADERS, **more):
    async with http.request(method, url, headers=headers, **more) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("path", PATHS)
async def test_the_metadata_header_is_required_and_forwarding_is_not_allowed(simulator, http, path):
    url = simulator.endpoint + path
    assert (await ask(http, url))[0] == 200
    assert (await ask(http, url, headers={"metadata": "True"}))[0] == 200
    assert (await ask(http, url, headers={}))[0] == 400
    assert (await ask(http, url, headers={"Metadata": "false"}))[0] == 400
    assert (await ask(http, url, headers={**HEADERS, "X-Forwarded-For": "10.0.0.1"}))[0] == 400


@pytest.mark.parametrize("path", PATHS)
async def test_a_wrong_method_is_405_with_what_is_allowed(simulator, http, path):
    async with http.put(simulator.endpoint + path, headers=HEADERS) as response:
        assert response.status == 405
        assert "GET" in response.headers["Allow"]


@pytest.mark.parametrize(
    ("query", "newest"),
    [
        ("scheduledevents", "2020-07-01"),
        ("scheduledevents?api-version=2021-02-01", "2020-07-01"),
        ("scheduledevents?api-version=latest", "2020-07-01"),
        ("instance", "2025-04-07"),
        ("instance?api-version=2020-07-01", "2025-04-07"),
        ("identity/oauth2/token?resource=x", "2025-04-07"),
    ],
)
async def test_a_missing_or_unknown_version_is_400_with_the_newest(simulator, http, query, newest):
    status, body = await ask(http, f"{simulator.endpoint}/metadata/{query}")
    assert status == 400
    assert body["error"]
    assert body["newest-versions"][0] == newest


async def test_a_parameter_given_twice_is_rejected(simulator, http):
    url = events_url(simulator.endpoint)
    assert (await ask(http, f"{url}&api-version=2020-07-01"))[0] == 400
    assert (await ask(http, f"{url}&API-Version=2020-07-01"))[0] == 400


async def test_the_case_of_paths_does_not_matter_and_other_paths_are_not_found(simulator, http):
    base = simulator.endpoint
    assert (await ask(http, f"{base}/metadata/scheduledEvents/?api-version=2020-07-01"))[0] == 200
    assert (await ask(http, f"{base}/metadata/attested?api-version=2020-07-01"))[0] == 404


async def test_versions_are_listed(simulator, http):
    status, body = await ask(http, simulator.endpoint + "/metadata/versions")
    assert status == 200
    assert set(API_VERSIONS) <= set(body["apiVersions"])


async def test_instance_metadata_can_be_asked_in_part(simulator, http):
    base = f"{simulator.endpoint}/metadata/instance/compute"
    assert (await ask(http, f"{base}?api-version=2021-02-01"))[1]["name"] == "vm-0"
    text = f"{base}/name?api-version=2021-02-01&format=text"
    async with http.get(text, headers=HEADERS) as response:
        assert await response.text() == "vm-0"
    assert (await ask(http, f"{base}/nothing?api-version=2021-02-01"))[0] == 404


async def test_a_token_needs_a_resource_and_has_the_shape_of_a_real_one(simulator, http):
    url = f"{simulator.endpoint}/metadata/identity/oauth2/token?api-version=2018-02-01"
    status, body = await ask(http, url)
    assert (status, body["error"]) == (400, "invalid_request")
    assert "resource" in body["error_description"]
    status, token = await ask(http, f"{url}&resource=https://x.example/&client_id=me")
    assert status == 200
    assert (token["resource"], token["client_id"]) == ("https://x.example/", "me")
    assert token["token_type"] == "Bearer"
    assert int(token["expires_on"]) - int(token["not_before"]) == int(token["expires_in"]) == 86400


async def test_an_approval_starts_the_event_and_may_be_repeated(simulator, http):
    event_id = simulator.world.create(type="Reboot").event_id
    for spelling in (event_id.lower(), event_id):
        assert await post_approval(http, simulator.endpoint, spelling) == 200
    (event,) = (await get_document(http, simulator.endpoint))["Events"]
    assert (event["EventStatus"], event["NotBefore"]) == ("Started", "")
    first, second = (r for r in simulator.truth if r["what"] == "approval")
    assert (first["eventIds"], first["released"]) == ([event_id], [event_id])
    assert (first["via"], first["vm"], first["status"]) == ("POST", "vm-0", 200)
    assert second["released"] == []


async def test_a_malformed_approval_is_400_and_in_the_truth(simulator, http):
    url = events_url(simulator.endpoint)
    assert (await ask(http, url, "POST", data=b'{"StartRequests": 1}'))[0] == 400
    (record,) = simulator.truth[-1:]
    assert (record["what"], record["eventIds"], record["status"]) == ("approval", None, 400)


async def test_one_unknown_id_spoils_the_whole_approval(simulator, http):
    entry = simulator.world.create(type="Reboot", name="mine")
    assert await post_approval(http, simulator.endpoint, entry.event_id, "other") == 400
    assert await post_approval(http, simulator.endpoint, "mine") == 400
    assert entry.status == "Scheduled"


async def test_the_answer_to_an_unknown_id_can_be_chosen(http):
    async with Simulator(Scenario(approve_unknown=200)) as simulator:
        entry = simulator.world.create(type="Reboot")
        assert await post_approval(http, simulator.endpoint, "other", entry.event_id) == 200
        assert entry.status == "Started"
    async with Simulator(Scenario(approve_unknown=404)) as simulator:
        assert await post_approval(http, simulator.endpoint, "other") == 404


async def test_the_first_version_wants_the_incarnation_back_and_no_header(simulator, http):
    event_id = simulator.world.create(type="Reboot").event_id
    old = {"api_version": "2017-03-01"}
    assert await post_approval(http, simulator.endpoint, event_id, **old) == 400
    body = {"StartRequests": [{"EventId": event_id}], "DocumentIncarnation": 2}
    url = events_url(simulator.endpoint, "2017-03-01")
    async with http.post(url, json=body) as response:
        assert response.status == 200
    async with http.get(url) as response:
        assert response.status == 400
    async with http.post(events_url(simulator.endpoint, "2017-08-01"), json=body) as response:
        assert response.status == 400


async def test_a_stale_incarnation_can_be_refused(http):
    async with Simulator(Scenario(approve_stale=409)) as simulator:
        event_id = simulator.world.create(type="Reboot").event_id
        old = {"api_version": "2017-03-01"}
        endpoint = simulator.endpoint
        assert await post_approval(http, endpoint, event_id, **old, DocumentIncarnation=1) == 409
        assert await post_approval(http, endpoint, event_id, **old, DocumentIncarnation="2") == 200
