"""Requests to Azure: connections, timeouts and order."""

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from support.canned_server import CannedServer, http
from support.metadata_client import DOCUMENT, EVENT, QUIET, chosen, client, fetched

from bridge.core.model import Instance
from bridge.metadata.answers import Accepted, Answer, SourceProblem, read_document
from bridge.metadata.budget import Budget

PROXIES = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]


async def test_a_document_is_read_with_the_date_of_the_answer():
    answer = await fetched(http(body=DOCUMENT, Date="Sun, 15 Nov 2026 18:29:47 GMT"))
    assert isinstance(answer, Answer)
    assert answer.document is not None
    assert answer.document.incarnation == 5
    assert answer.document.events[0].event_id == EVENT["EventId"]
    assert answer.date == datetime(2026, 11, 15, 18, 29, 47, tzinfo=UTC)


async def test_an_unchanged_body_is_parsed_once_and_keeps_the_date_of_each_answer(monkeypatch):
    parsed = []

    def read(reply, api_version):
        parsed.append(reply.body)
        return read_document(reply, api_version)

    monkeypatch.setattr("bridge.metadata.client.read_document", read)
    dates = [f"Sun, 15 Nov 2026 18:29:4{second} GMT" for second in range(3)]
    left = [*(http(body=DOCUMENT, Date=date) for date in dates), http(body=QUIET)]

    async def answer_next(_):
        return left.pop(0)

    async with (
        CannedServer(handler=answer_next) as server,
        client(server.url) as metadata,
    ):
        answers: list[Any] = [await metadata.fetch() for _ in range(4)]
    assert [answer.date.second for answer in answers[:3] if answer.date] == [40, 41, 42]
    assert answers[0].document is answers[1].document is answers[2].document
    assert answers[3].document.events == ()
    assert len(parsed) == 2


async def test_zero_bytes_and_unchanged_are_told_apart_from_a_document_without_events():
    assert await fetched(http()) == Answer(None, empty=True)
    assert await fetched(b"HTTP/1.1 304 Not Modified\r\n\r\n") == Answer(None, status=304)
    quiet = await fetched(http(body=QUIET))
    assert isinstance(quiet, Answer)
    assert quiet.document is not None
    assert quiet.document.events == ()


@pytest.mark.parametrize("slash", ["", "/"])
async def test_the_url_header_and_version_are_what_azure_asks_for(slash):
    async with (
        CannedServer(http(body=QUIET)) as server,
        client(server.url + slash, "2019-08-01") as metadata,
    ):
        await metadata.fetch()
    (request,) = server.requests
    assert request.method == "GET"
    assert request.target == "/metadata/scheduledevents?api-version=2019-08-01"
    assert request.headers["metadata"] == "true"
    assert "x-forwarded-for" not in request.headers


async def test_an_approval_is_a_post_with_the_header_and_azures_own_spelling():
    async with CannedServer(http()) as server, client(server.url) as metadata:
        accepted = await metadata.approve(chosen(EVENT["EventId"], "B"), incarnation=5)
    assert accepted == Accepted()
    (request,) = server.requests
    assert request.method == "POST"
    assert request.target == "/metadata/scheduledevents?api-version=2020-07-01"
    assert request.headers["metadata"] == "true"
    assert request.headers["content-type"] == "application/json"
    ids = [{"EventId": EVENT["EventId"]}, {"EventId": "B"}]
    assert json.loads(request.body) == {"StartRequests": ids}


@pytest.mark.parametrize("incarnation", [5, "5"], ids=["number", "text"])
async def test_the_first_version_gets_the_incarnation_back_exactly_as_it_came(incarnation):
    first = {**DOCUMENT, "DocumentIncarnation": incarnation}
    async with (
        CannedServer(http(body=first)) as server,
        client(server.url, "2017-03-01") as metadata,
    ):
        answer = await metadata.fetch()
        assert isinstance(answer, Answer)
        assert answer.document is not None
        await metadata.approve(chosen("A"), answer.document.incarnation)
    sent = json.loads(server.requests[1].body)
    assert sent == {"StartRequests": [{"EventId": "A"}], "DocumentIncarnation": incarnation}


@pytest.mark.parametrize("version", ["2017-08-01", "2019-01-01", "2020-07-01"])
async def test_no_later_version_gets_the_incarnation(version):
    async with CannedServer(http()) as server, client(server.url, version) as metadata:
        await metadata.approve(chosen("A"), 5)
    assert "DocumentIncarnation" not in json.loads(server.requests[0].body)


async def test_the_first_version_without_an_incarnation_sends_none():
    async with CannedServer(http()) as server, client(server.url, "2017-03-01") as metadata:
        await metadata.approve(chosen("A"))
    assert "DocumentIncarnation" not in json.loads(server.requests[0].body)


async def test_the_vm_is_asked_for_with_the_version_of_its_own_category():
    compute = {"compute": {"name": "web_0", "vmId": "7"}}
    async with (
        CannedServer(http(body=compute)) as server,
        client(server.url, "2017-03-01") as metadata,
    ):
        instance = await metadata.instance()
    assert instance == Instance(name="web_0", vm_id="7")
    assert server.requests[0].target == "/metadata/instance?api-version=2021-02-01"
    assert server.requests[0].headers["metadata"] == "true"


class Silent:
    """Answers nothing while `mute`."""

    def __init__(self) -> None:
        self.mute = True

    async def __call__(self, _: object) -> bytes | None:
        if self.mute:
            await asyncio.sleep(20)
        return http(body=QUIET)


async def test_the_first_answer_may_take_long_and_the_next_ones_may_not():
    async def slow(_: object) -> bytes:
        await asyncio.sleep(0.3)
        return http(body=QUIET)

    async with (
        CannedServer(handler=slow) as server,
        client(server.url, first_timeout=15, timeout=0.05, connect_timeout=0.2) as metadata,
    ):
        assert isinstance(await metadata.fetch(), Answer)
        late = await metadata.fetch()
    assert isinstance(late, SourceProblem)
    assert late.reason == "timeout"


async def test_a_problem_does_not_end_the_patience_for_the_first_answer():
    answers = iter([http(410), http(503), http(body=QUIET)])

    async def updating(_: object) -> bytes:
        await asyncio.sleep(0.3)
        return next(answers)

    async with (
        CannedServer(handler=updating) as server,
        client(server.url, first_timeout=15, timeout=0.01, connect_timeout=0.2) as metadata,
    ):
        got = [await metadata.fetch() for _ in range(3)]
    assert [isinstance(answer, Answer) for answer in got] == [False, False, True]


async def test_after_a_day_of_silence_there_is_patience_again():
    now = [0.0]

    async def slow(_: object) -> bytes:
        await asyncio.sleep(0.3)
        return http(body=QUIET)

    async with (
        CannedServer(handler=slow) as server,
        client(
            server.url, first_timeout=15, timeout=0.01, connect_timeout=0.2, clock=lambda: now[0]
        ) as metadata,
    ):
        assert isinstance(await metadata.fetch(), Answer)
        now[0] = 23 * 3600.0
        assert isinstance(await metadata.fetch(), SourceProblem)
        now[0] = 25 * 3600.0
        assert isinstance(await metadata.fetch(), Answer)


async def test_a_slow_body_does_not_block_the_bridge_forever():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    async with (
        CannedServer(head, parts=[b" "] * 1000, pause=0.02) as server,
        client(server.url, first_timeout=0.2, connect_timeout=0.5) as metadata,
    ):
        problem = await metadata.fetch()
    assert isinstance(problem, SourceProblem)
    assert problem.reason == "timeout"


async def test_a_redirect_is_a_problem_and_its_target_is_never_contacted():
    async with CannedServer(http(body=DOCUMENT)) as trap:
        answer = http(302, Location=f"{trap.url}/metadata/scheduledevents")
        async with CannedServer(answer) as server, client(server.url) as metadata:
            results = [
                await metadata.fetch(),
                await metadata.approve(chosen("A")),
                await metadata.instance(),
            ]
    assert [getattr(result, "reason", None) for result in results] == ["redirected"] * 3
    assert trap.connections == 0


async def test_proxy_variables_in_the_environment_are_ignored(monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with CannedServer(http(body=DOCUMENT)) as trap, CannedServer(http(body=QUIET)) as server:
        for name in PROXIES:
            monkeypatch.setenv(name, trap.url)
        async with client(server.url) as metadata:
            await metadata.fetch()
            await metadata.approve(chosen("A"))
    assert len(server.requests) == 2
    assert trap.connections == 0


async def test_cookies_are_not_kept():
    async with (
        CannedServer(http(body=QUIET, Set_Cookie="a=b")) as server,
        client(f"http://localhost:{server.port}") as metadata,
    ):
        await metadata.fetch()
        await metadata.fetch()
    assert "cookie" not in server.requests[1].headers


async def test_one_connection_serves_all_requests():
    async with CannedServer(http(body=QUIET)) as server, client(server.url) as metadata:
        for _ in range(5):
            await metadata.fetch()
            await metadata.approve(chosen("A"))
    assert server.connections == 1


async def test_a_connection_that_the_service_closed_meanwhile_is_opened_again():
    async with (
        CannedServer(http(body=QUIET), hang_up=True) as server,
        client(server.url) as metadata,
    ):
        for _ in range(3):
            assert isinstance(await metadata.fetch(), Answer)
    assert server.connections == 3


async def test_calls_never_overlap_and_waiting_is_no_connect_timeout():
    async def steady(_: object) -> bytes:
        await asyncio.sleep(0.05)
        return http(body=QUIET)

    async with (
        CannedServer(handler=steady) as server,
        client(server.url, connect_timeout=0.25) as metadata,
    ):
        calls = [metadata.fetch() for _ in range(4)] + [
            metadata.approve(chosen("A")) for _ in range(4)
        ]
        results = await asyncio.gather(*calls)
    assert [result for result in results if isinstance(result, SourceProblem)] == []
    assert len(server.requests) == 8
    assert server.at_once == 1


async def test_an_approval_goes_before_all_reads_that_still_wait():
    go = asyncio.Event()

    async def gated(_: object) -> bytes:
        await go.wait()
        return http(body=QUIET)

    async with CannedServer(handler=gated) as server, client(server.url) as metadata:
        reads = [asyncio.create_task(metadata.fetch()) for _ in range(10)]
        for _ in range(1000):
            if server.requests:
                break
            await asyncio.sleep(0.005)
        approval = asyncio.create_task(metadata.approve(chosen("A")))
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(approval, *reads)
    assert [request.method for request in server.requests].index("POST") == 1


async def test_polls_approvals_and_the_vm_share_one_budget():
    now = [50.0]
    left: list[float] = []

    async def sleep(seconds: float) -> None:
        now[0] += seconds

    async def stamped(_: object) -> bytes:
        left.append(now[0])
        return http(body={**QUIET, "compute": {}})

    budget = Budget(clock=lambda: now[0], sleep=sleep)
    async with (
        CannedServer(handler=stamped) as server,
        client(server.url, budget=budget) as metadata,
    ):
        calls = [
            call
            for _ in range(6)
            for call in (metadata.fetch(), metadata.approve(chosen("A")), metadata.instance())
        ]
        await asyncio.gather(*calls)
    assert len(left) == 18
    assert all(later - earlier >= 1.0 for earlier, later in zip(left, left[5:], strict=False))


async def test_a_call_that_is_canceled_leaves_the_wire_to_the_next():
    silent = Silent()
    async with CannedServer(handler=silent) as server, client(server.url) as metadata:
        call = asyncio.create_task(metadata.fetch())
        for _ in range(1000):
            if server.requests:
                break
            await asyncio.sleep(0.005)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        silent.mute = False
        assert isinstance(await metadata.fetch(), Answer)


async def test_use_outside_of_async_with_is_an_error_of_the_programmer():
    with pytest.raises(RuntimeError, match="async with"):
        await client("http://127.0.0.1:1").fetch()


def test_only_the_client_half_of_aiohttp_is_loaded():
    program = "import sys, bridge.metadata.client, bridge.metadata.discovery; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=25
    )
    loaded = done.stdout.split()
    assert "aiohttp.client" in loaded
    assert "aiohttp.web" not in loaded
    assert "pydantic" not in loaded
