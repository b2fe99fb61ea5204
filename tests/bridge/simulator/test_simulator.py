import asyncio
import contextlib
import socket

import aiohttp
import pytest
from support.simulator_tools import HEADERS, get_document, post_approval, whats

from bridge.simulator import Scenario, Simulator


async def instance_name(http, endpoint: str) -> str:
    url = f"{endpoint}/metadata/instance?api-version=2021-02-01"
    async with http.get(url, headers=HEADERS) as response:
        return (await response.json())["compute"]["name"]


async def test_a_scenario_is_played_to_its_end(http):
    async with Simulator("reboot", speed=3000) as simulator:
        await simulator.script_done()
        assert len((await get_document(http, simulator.endpoint))["Events"]) == 1
        await simulator.done()
        assert (await get_document(http, simulator.endpoint))["Events"] == []
    lives = [record for record in simulator.truth if "eventId" in record]
    assert whats(lives) == ["scheduled", "started", "completed"]


async def test_every_vm_sees_the_same_events_and_is_someone_else(http):
    async with Simulator("multi-vm", speed=60) as simulator:
        event_id = simulator.world.create(type="Redeploy", resources=["back-0"]).event_id
        documents = [
            await get_document(http, endpoint) for endpoint in simulator.endpoints.values()
        ]
        assert all(document == documents[0] for document in documents)
        for name, endpoint in simulator.endpoints.items():
            assert await instance_name(http, endpoint) == name
        assert await post_approval(http, simulator.endpoints["front-1"], event_id) == 200
        assert simulator.truth[-2]["vm"] == "front-1"
        assert simulator.truth[-1]["what"] == "started"


def _is_free(port: int) -> bool:
    with socket.socket() as trial, contextlib.suppress(OSError):
        trial.bind(("127.0.0.1", port))
        return True
    return False


@contextlib.contextmanager
def taken_after_a_free_one():
    """A port that is taken, while the one before it is free."""
    for _ in range(100):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            if _is_free(port - 1):
                yield port
                return
    raise AssertionError("there are no two ports in a row")


async def test_the_first_vm_takes_the_port_and_the_others_the_next_or_a_free_one(http):
    with taken_after_a_free_one() as port:
        scenario = Scenario.model_validate({"vms": [{"name": "a"}, {"name": "b"}]})
        with pytest.raises(OSError, match="in use"):
            async with Simulator(scenario, port=port):
                pass
        async with Simulator(scenario, port=port - 1) as simulator:
            assert simulator.endpoint == f"http://127.0.0.1:{port - 1}"
            assert simulator.endpoints["b"] != f"http://127.0.0.1:{port}"
            assert await instance_name(http, simulator.endpoints["b"]) == "b"


async def test_what_is_created_from_outside_wakes_the_world(http):
    async with Simulator(speed=1000) as simulator:
        await simulator.script_done()
        simulator.world.create(type="Reboot", status="Started", started_for="10s")
        await simulator.done()
        assert simulator.world.entries == {}


async def test_leaving_does_not_wait_for_slow_answers(http):
    async with Simulator(Scenario(first_call_delay="1h")) as simulator:
        asking = asyncio.create_task(get_document(http, simulator.endpoint))
        while not simulator.truth:
            await asyncio.sleep(0.01)
    with pytest.raises(aiohttp.ClientError):
        await asking


def test_a_speed_must_be_positive():
    with pytest.raises(ValueError, match="greater than 0"):
        Simulator(speed=0)
