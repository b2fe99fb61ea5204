"""What each kind of fault does to an answer, over real HTTP."""

import json

import aiohttp
import pytest
from support.simulator_tools import ask, get_document


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
