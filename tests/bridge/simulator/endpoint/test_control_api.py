import aiohttp
import pytest
from support.simulator_tools import get_document

from bridge.simulator import Scenario, Simulator


@pytest.fixture
async def simulator():
    async with Simulator(Scenario(strict=True)) as simulator:
        yield simulator


@pytest.fixture
async def control(simulator):
    async with aiohttp.ClientSession() as session:

        async def ask(method, path, body=None):
            url = f"{simulator.endpoint}/control/{path}"
            async with session.request(method, url, json=body) as response:
                return response.status, await response.json()

        yield ask


async def test_an_event_can_be_taken_through_its_life(simulator, control):
    status, event = await control("POST", "events", {"type": "Reboot", "name": "r"})
    assert (status, event["status"], event["resources"]) == (201, "Scheduled", ["vm-0"])
    path = f"events/{event['eventId']}"
    _, moved = await control("POST", f"{path}/reschedule", {"notice": "30m"})
    assert moved["notBefore"] > event["notBefore"]
    _, changed = await control("POST", f"{path}/update", {"resources": ["vm-0", "vm-1"]})
    assert changed["resources"] == ["vm-0", "vm-1"]
    assert (await control("POST", f"{path}/start"))[1]["status"] == "Started"
    assert (await control("POST", "events/r/complete"))[0] == 200
    _, truth = await control("GET", "truth")
    whats = [record["what"] for record in truth]
    assert whats == ["scheduled", "updated", "updated", "started", "completed"]
    assert (await control("GET", "truth?after=4"))[1] == truth[4:]
    assert truth == simulator.truth


async def test_an_event_can_be_canceled_and_another_approved(simulator, control):
    for name in ("a", "b"):
        await control("POST", "events", {"type": "Reboot", "name": name})
    assert (await control("POST", "events/a/cancel"))[0] == 200
    assert (await control("POST", "events/b/approve"))[1]["status"] == "Started"
    _, approvals = await control("GET", "approvals")
    assert [approval["via"] for approval in approvals] == ["control"]


async def test_the_state_tells_vms_events_and_faults(simulator, control):
    await control("POST", "events", {"type": "Reboot"})
    await control("POST", "faults", {"kind": "empty", "count": 3, "for": "1m"})
    status, state = await control("GET", "state")
    assert status == 200
    assert state["vms"] == {"vm-0": simulator.endpoint}
    assert (len(state["events"]), state["documentIncarnation"]) == (1, 2)
    assert state["faults"] == [
        {"kind": "empty", "count": 3, "for": 60.0, "name": "empty-1", "left": 3}
    ]
    assert (state["scriptDone"], state["done"], state["enabled"]) == (True, False, False)


async def test_faults_can_be_added_listed_and_cleared(control):
    for name in ("a", "b", "c"):
        assert (await control("POST", "faults", {"kind": "empty", "name": name}))[0] == 201
    assert [fault["name"] for fault in (await control("GET", "faults"))[1]] == ["a", "b", "c"]
    assert await control("DELETE", "faults/b") == (200, {"cleared": 1})
    assert await control("DELETE", "faults") == (200, {"cleared": 2})
    assert (await control("GET", "faults"))[1] == []


async def test_the_feature_can_be_disabled(simulator, control):
    async with aiohttp.ClientSession() as session:
        await get_document(session, simulator.endpoint)
        assert (await control("GET", "state"))[1]["enabled"] is True
        assert await control("POST", "disable") == (200, {"enabled": False})


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "sentence"),
    [
        ("POST", "events", {"type": "Rebot"}, 400, "type: 'Rebot' is not an event type"),
        ("POST", "events", {"type": "Reboot", "notise": "1m"}, 400, "did you mean 'notice'?"),
        ("POST", "events", [], 409, "not a JSON object"),
        ("POST", "events", {"type": "Reboot", "notice": "1m"}, 409, "at least 15m, not 1m"),
        ("POST", "events/none/cancel", None, 404, "no scheduled event 'none'"),
        ("POST", "events/none/jump", None, 404, "no action 'jump'; choose from cancel, start, "),
        ("POST", "events/none/reschedule", {}, 400, "notice: Field required"),
        ("POST", "faults", {"kind": "empty", "count": 0}, 400, "count: "),
        ("GET", "truth?after=x", None, 409, "a number, not 'x'"),
        ("GET", "nothing", None, 400, "header"),
    ],
)
async def test_a_wrong_call_is_answered_with_one_sentence(
    control, method, path, body, status, sentence
):
    got, answer = await control(method, path, body)
    assert got == status
    assert sentence in answer["error"]


async def test_an_event_of_a_type_that_nobody_knows_yet_is_created_and_announced(
    simulator, control
):
    status, event = await control("POST", "events", {"type": "Teleport", "name": "t"})
    assert (status, event["eventType"]) == (201, "Teleport")
    async with aiohttp.ClientSession() as http:
        [shown] = (await get_document(http, simulator.endpoint))["Events"]
    assert shown["EventType"] == "Teleport"
