"""Each fault as a client meets it, over real HTTP."""

import json
from email.utils import parsedate_to_datetime

import aiohttp
import pytest
from support.simulator_tools import HEADERS, events_url, get_document, post_approval

from bridge.simulator import Simulator


@pytest.fixture
async def simulator():
    async with Simulator() as simulator:
        simulator.world.create(type="Reboot", name="r")
        yield simulator


@pytest.fixture
async def http():
    async with aiohttp.ClientSession() as session:
        yield session


async def ask(http, simulator):
    url = events_url(simulator.endpoint)
    async with http.get(url, headers=HEADERS, allow_redirects=False) as response:
        return response.status, response.headers, await response.read()


@pytest.mark.parametrize(
    ("kind", "keys", "status"),
    [
        ("status", {}, 503),
        ("status", {"status": 410}, 410),
        ("throttle", {}, 429),
        ("unauthorized", {}, 401),
        ("forbidden", {}, 403),
        ("not-modified", {}, 304),
        ("redirect", {}, 302),
        ("redirect", {"status": 307}, 307),
    ],
)
async def test_a_fault_can_be_any_status_and_then_it_is_over(simulator, http, kind, keys, status):
    simulator.world.fault(kind, count=1, **keys)
    got, headers, _ = await ask(http, simulator)
    assert got == status
    assert "Retry-After" not in headers
    assert len((await get_document(http, simulator.endpoint))["Events"]) == 1
    assert [r["what"] for r in simulator.truth][1:3] == ["fault-begun", "fault-ended"]


async def test_throttling_may_say_when_to_return(simulator, http):
    simulator.world.fault("throttle", retry_after=7)
    status, headers, _ = await ask(http, simulator)
    assert (status, headers["Retry-After"]) == (429, "7")


async def test_a_redirect_says_where_to(simulator, http):
    simulator.world.fault("redirect", location="http://127.0.0.1:9/")
    assert (await ask(http, simulator))[1]["Location"] == "http://127.0.0.1:9/"


async def test_an_answer_may_be_empty_or_foreign_or_of_the_wrong_shape(simulator, http):
    for kind in ("empty", "garbage", "wrong-shape"):
        simulator.world.fault(kind, count=1)
    assert (await ask(http, simulator))[::2] == (200, b"")
    status, headers, body = await ask(http, simulator)
    assert (status, headers["Content-Type"]) == (200, "text/html")
    assert b"<html>" in body
    status, _, body = await ask(http, simulator)
    assert status == 200
    assert not isinstance(json.loads(body)["Events"], list)


async def test_a_truncated_answer_ends_before_its_length(simulator, http):
    simulator.world.fault("truncated", count=1)
    with pytest.raises(aiohttp.ClientPayloadError):
        await ask(http, simulator)


async def test_an_oversized_answer_is_the_true_one_and_much_more(simulator, http):
    simulator.world.fault("oversized", size="2MiB")
    _, _, body = await ask(http, simulator)
    assert len(body) == 2 * 1024**2
    assert len(json.loads(body)["Events"]) == 1


async def test_a_reset_breaks_the_connection(simulator, http):
    simulator.world.fault("reset")
    with pytest.raises((ConnectionResetError, aiohttp.ClientConnectionError)):
        await ask(http, simulator)
    simulator.world.clear_faults()
    assert (await ask(http, simulator))[0] == 200


async def test_a_delayed_answer_outlasts_a_short_patience(simulator, http):
    simulator.world.fault("delay", delay="1h", count=1)
    with pytest.raises(TimeoutError):
        async with http.get(
            events_url(simulator.endpoint),
            headers=HEADERS,
            timeout=aiohttp.ClientTimeout(total=0.2),
        ):
            pass
    assert (await ask(http, simulator))[0] == 200


async def test_a_delay_is_divided_by_the_speed(http):
    async with Simulator(speed=3600) as simulator:
        simulator.world.fault("delay", delay="10m")
        assert (await ask(http, simulator))[0] == 200


@pytest.mark.parametrize(("skew", "seconds"), [("-5m", -300), ("1h", 3600)])
async def test_a_skewed_clock_shows_in_the_date_header_alone(simulator, http, skew, seconds):
    simulator.world.fault("skew", skew=skew)
    _, headers, _ = await ask(http, simulator)
    date = parsedate_to_datetime(headers["Date"])
    off = (date - simulator.world.clock()).total_seconds()
    assert seconds - 20 < off <= seconds


async def test_a_spoilt_approval_has_no_effect_and_is_in_the_truth(simulator, http):
    event_id = simulator.world.event_id("r")
    simulator.world.fault("status", status=500, methods=["POST"], count=1)
    assert await post_approval(http, simulator.endpoint, event_id) == 500
    assert simulator.world.find("r").status == "Scheduled"
    (record,) = (r for r in simulator.truth if r["what"] == "approval")
    assert (record["eventIds"], record["released"]) == ([event_id], [])
    assert (record["fault"], record["status"]) == ("status", 500)


async def test_an_approval_may_take_effect_although_its_answer_is_lost(simulator, http):
    event_id = simulator.world.event_id("r")
    simulator.world.fault("reset", methods=["POST"], processed=True, count=1)
    with pytest.raises((ConnectionResetError, aiohttp.ClientConnectionError)):
        await post_approval(http, simulator.endpoint, event_id)
    assert simulator.world.find("r").status == "Started"
    (record,) = (r for r in simulator.truth if r["what"] == "approval")
    assert (record["released"], record["fault"]) == ([event_id], "reset")


async def test_faults_of_other_paths_leave_documents_alone(simulator, http):
    simulator.world.fault("status", paths=["instance"])
    assert (await ask(http, simulator))[0] == 200
    url = simulator.endpoint + "/metadata/instance?api-version=2021-02-01"
    async with http.get(url, headers=HEADERS) as response:
        assert response.status == 503
