"""Answers to one VM: delays, clocks, limits, resets, and what a damaged answer hides."""

import asyncio
from email.utils import parsedate_to_datetime

import aiohttp
import pytest
from support.simulator_tools import HEADERS, ask, events_url, get_document, post_approval, whats

from bridge.simulator import Scenario, Simulator


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
async def test_a_skewed_clock_affects_only_the_date_header(simulator, http, skew, seconds):
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


async def test_a_reset_is_a_reset_on_the_socket(http):
    async with Simulator() as simulator:
        simulator.world.fault("reset")
        host, port = simulator.endpoint.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /metadata/scheduledevents HTTP/1.1\r\nHost: x\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()


async def test_more_than_the_limit_is_429(http):
    async with Simulator(Scenario(rate_limit=5)) as simulator:
        url = simulator.endpoint + "/metadata/versions"
        statuses = []
        for _ in range(20):
            async with http.get(url, headers=HEADERS) as response:
                statuses.append(response.status)
    assert statuses[:5] == [200] * 5
    assert 429 in statuses[5:]


async def test_the_first_call_is_answered_late_and_the_second_immediately(http):
    scenario = Scenario(first_call_delay="10m")
    async with Simulator(scenario, speed=2000) as simulator:
        began = simulator.world.clock()
        await get_document(http, simulator.endpoint)
        assert (simulator.world.clock() - began).total_seconds() >= 0.3
        assert simulator.world.touch("vm-0") < simulator.world.clock()
    assert whats(simulator.truth) == ["enabled"]
