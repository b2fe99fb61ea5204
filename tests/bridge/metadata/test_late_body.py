"""A request's body is chosen when the request can leave, and a request without one does not."""

import asyncio
import json

import pytest
from support.canned_server import CannedServer, http
from support.metadata_client import QUIET, chosen, client
from support.until import until

from bridge.common.errors import Unavailable
from bridge.metadata.answers import OUTDATED, WITHDRAWN, Accepted, Answer, SourceProblem
from bridge.metadata.budget import Budget


async def test_the_events_are_chosen_after_the_budget_is_taken():
    steps = []

    async def sleep(_: float) -> None:
        steps.append("budget")
        now[0] += 1

    async def choose() -> list[str]:
        steps.append("choice")
        return ["A"]

    now = [0.0]
    budget = Budget(limit=1, clock=lambda: now[0], sleep=sleep)
    async with (
        CannedServer(http(body=QUIET)) as server,
        client(server.url, budget=budget) as metadata,
    ):
        await metadata.fetch()
        assert await metadata.approve(choose) == Accepted()
    assert steps == ["budget", "choice"]


@pytest.mark.parametrize("kept", [True, False], ids=["kept alive", "closed by the service"])
async def test_the_events_are_chosen_when_the_connection_is_there(kept):
    seen = []

    async def choose() -> list[str]:
        await until(lambda: server.connections == (1 if kept else 2))
        seen.append(len(server.requests))
        return ["A"]

    async with (
        CannedServer(http(body=QUIET), hang_up=not kept) as server,
        client(server.url) as metadata,
    ):
        await metadata.fetch()
        await asyncio.sleep(0)
        assert await metadata.approve(choose) == Accepted()
    assert seen == [1]
    assert [one.method for one in server.requests] == ["GET", "POST"]


async def test_where_there_is_no_connection_nothing_is_chosen():
    async def choose() -> list[str]:
        raise AssertionError("chosen without a connection")

    async with CannedServer() as server:
        pass
    async with client(server.url, connect_timeout=0.5) as metadata:
        answer = await metadata.approve(choose)
    assert isinstance(answer, SourceProblem)
    assert answer.reason == "unreachable"


async def test_the_body_has_its_length_and_is_not_sent_in_chunks():
    async with CannedServer(http()) as server, client(server.url) as metadata:
        await metadata.approve(chosen("A", "B"))
    [request] = server.requests
    assert request.headers["content-length"] == str(len(request.body))
    assert "transfer-encoding" not in request.headers
    assert json.loads(request.body) == {"StartRequests": [{"EventId": "A"}, {"EventId": "B"}]}


async def test_when_nothing_is_chosen_nothing_is_sent_and_the_connection_stays():
    async with CannedServer(http(body=QUIET)) as server, client(server.url) as metadata:
        assert isinstance(await metadata.fetch(), Answer)
        assert await metadata.approve(chosen()) is WITHDRAWN
        assert isinstance(await metadata.fetch(), Answer)
        assert await metadata.approve(chosen("A")) == Accepted()
    assert [one.method for one in server.requests] == ["GET", "GET", "POST"]
    assert server.connections == 1


@pytest.mark.parametrize(
    "error", [Unavailable("the disk is full"), OSError(5, "I/O"), ValueError()]
)
async def test_an_error_of_the_choice_is_not_taken_for_one_of_the_service(error):
    async def choose() -> list[str]:
        raise error

    async with CannedServer(http(body=QUIET)) as server, client(server.url) as metadata:
        with pytest.raises(type(error)):
            await metadata.approve(choose)
        assert isinstance(await metadata.fetch(), Answer)
    assert [one.method for one in server.requests] == ["GET"]


async def test_a_request_that_fails_is_not_sent_again_without_another_choice():
    choices = []

    async def choose() -> list[str]:
        choices.append(len(server.requests))
        return ["A"]

    async with CannedServer(None) as server, client(server.url) as metadata:
        assert isinstance(await metadata.approve(choose), SourceProblem)
    assert len(choices) == len(server.requests) == 1


async def test_a_service_that_closes_the_connection_during_the_choice_is_a_problem():
    async def choose() -> list[str]:
        for task in server._tasks:
            task.cancel()
        await asyncio.sleep(0.05)
        return ["A"]

    async with CannedServer(http(body=QUIET)) as server, client(server.url) as metadata:
        await metadata.fetch()
        answer = await metadata.approve(choose)
    assert isinstance(answer, SourceProblem)
    assert answer.status is None


async def test_a_client_that_is_closed_while_a_request_waits_sends_nothing():
    waiting, go = asyncio.Event(), asyncio.Event()

    async def sleep(_: float) -> None:
        waiting.set()
        await go.wait()
        now[0] += 1

    now = [0.0]
    budget = Budget(limit=1, clock=lambda: now[0], sleep=sleep)
    async with CannedServer(http(body=QUIET)) as server:
        async with client(server.url, budget=budget) as metadata:
            await metadata.fetch()
            approval = asyncio.create_task(metadata.approve(chosen("A")))
            await waiting.wait()
        go.set()
        assert await approval is OUTDATED
    assert [one.method for one in server.requests] == ["GET"]
