import asyncio
import json
import random
import socket
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from support.metadata_far_side import FarSide, http

from bridge.core.model import Instance
from bridge.metadata.answers import Accepted, Answer, Problem
from bridge.metadata.budget import Budget
from bridge.metadata.client import LARGEST_BODY, Metadata

EVENT = {
    "EventId": "602d9444-D2CD-49c7-8624-8643e7171297",
    "EventType": "Reboot",
    "EventStatus": "Scheduled",
    "ResourceType": "VirtualMachine",
    "Resources": ["web_0"],
    "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT",
}
DOCUMENT = {"DocumentIncarnation": 5, "Events": [EVENT]}
QUIET = {"DocumentIncarnation": 6, "Events": []}
PROXIES = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]


def client(endpoint: str, version: str = "2020-07-01", **options) -> Metadata:
    """One that is not held back by the budget, unless a test is about it."""
    return Metadata(endpoint, version, **{"budget": Budget(limit=10_000), **options})


async def fetched(answer: bytes | None, **far: bool) -> Answer | Problem:
    async with FarSide(answer, **far) as side, client(side.url) as metadata:
        return await metadata.fetch()


async def reason(answer: bytes | None, **far: bool) -> str:
    problem = await fetched(answer, **far)
    assert isinstance(problem, Problem), problem
    assert problem.detail.endswith((".", "…"))
    return problem.reason


async def test_a_document_is_read_with_the_date_of_the_answer():
    answer = await fetched(http(body=DOCUMENT, Date="Sun, 15 Nov 2026 18:29:47 GMT"))
    assert isinstance(answer, Answer)
    assert answer.document is not None
    assert answer.document.incarnation == 5
    assert answer.document.events[0].event_id == EVENT["EventId"]
    assert answer.date == datetime(2026, 11, 15, 18, 29, 47, tzinfo=UTC)


async def test_zero_bytes_and_unchanged_are_told_apart_from_a_document_without_events():
    assert await fetched(http()) == Answer(None, empty=True)
    assert await fetched(b"HTTP/1.1 304 Not Modified\r\n\r\n") == Answer(None)
    quiet = await fetched(http(body=QUIET))
    assert isinstance(quiet, Answer)
    assert quiet.document is not None
    assert quiet.document.events == ()


@pytest.mark.parametrize("slash", ["", "/"])
async def test_the_url_header_and_version_are_what_azure_asks_for(slash):
    async with (
        FarSide(http(body=QUIET)) as side,
        client(side.url + slash, "2019-08-01") as metadata,
    ):
        await metadata.fetch()
    (request,) = side.requests
    assert request.method == "GET"
    assert request.target == "/metadata/scheduledevents?api-version=2019-08-01"
    assert request.headers["metadata"] == "true"
    assert "x-forwarded-for" not in request.headers


async def test_an_approval_is_a_post_with_the_header_and_azures_own_spelling():
    async with FarSide(http()) as side, client(side.url) as metadata:
        accepted = await metadata.approve([EVENT["EventId"], "B"], incarnation=5)
    assert accepted == Accepted()
    (request,) = side.requests
    assert request.method == "POST"
    assert request.target == "/metadata/scheduledevents?api-version=2020-07-01"
    assert request.headers["metadata"] == "true"
    assert request.headers["content-type"] == "application/json"
    ids = [{"EventId": EVENT["EventId"]}, {"EventId": "B"}]
    assert json.loads(request.body) == {"StartRequests": ids}


@pytest.mark.parametrize("incarnation", [5, "5"], ids=["number", "text"])
async def test_the_first_version_gets_the_incarnation_back_exactly_as_it_came(incarnation):
    first = {**DOCUMENT, "DocumentIncarnation": incarnation}
    async with FarSide(http(body=first)) as side, client(side.url, "2017-03-01") as metadata:
        answer = await metadata.fetch()
        assert isinstance(answer, Answer)
        assert answer.document is not None
        await metadata.approve(["A"], answer.document.incarnation)
    sent = json.loads(side.requests[1].body)
    assert sent == {"StartRequests": [{"EventId": "A"}], "DocumentIncarnation": incarnation}


@pytest.mark.parametrize("version", ["2017-08-01", "2019-01-01", "2020-07-01"])
async def test_no_later_version_gets_the_incarnation(version):
    async with FarSide(http()) as side, client(side.url, version) as metadata:
        await metadata.approve(["A"], 5)
    assert "DocumentIncarnation" not in json.loads(side.requests[0].body)


async def test_the_first_version_without_an_incarnation_sends_none():
    async with FarSide(http()) as side, client(side.url, "2017-03-01") as metadata:
        await metadata.approve(["A"])
    assert "DocumentIncarnation" not in json.loads(side.requests[0].body)


async def test_the_vm_is_asked_for_with_the_version_of_its_own_category():
    compute = {"compute": {"name": "web_0", "vmId": "7"}}
    async with FarSide(http(body=compute)) as side, client(side.url, "2017-03-01") as metadata:
        instance = await metadata.instance()
    assert instance == Instance(name="web_0", vm_id="7")
    assert side.requests[0].target == "/metadata/instance?api-version=2021-02-01"
    assert side.requests[0].headers["metadata"] == "true"


async def test_a_status_that_is_an_error_is_a_problem_for_all_three_calls():
    answer = http(429, {"error": "slow down"}, Retry_After="3")
    async with FarSide(answer) as side, client(side.url) as metadata:
        for problem in (
            await metadata.fetch(),
            await metadata.approve(["A"]),
            await metadata.instance(),
        ):
            assert isinstance(problem, Problem)
            assert (problem.reason, problem.retry_after) == ("throttled", 3.0)
            assert "slow down" in problem.detail


async def test_an_error_status_counts_even_when_its_body_breaks_off():
    answer = b"HTTP/1.1 503 No\r\nContent-Length: 500\r\n\r\nhalf"
    assert await reason(answer, hang_up=True) == "server-error"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<html>sign in here</html>", "not-json"),
        (b'{"Events": [NaN]}', "not-json"),
        (b'{"Events": [], "DocumentIncarnation": 1e999}', "not-json"),
        (b'{"Events": [], "DocumentIncarnation": ' + b"1" * 30 + b"}", "not-json"),
        (b'{"Events": "\xff"}', "not-json"),
        (b"[" * 200_000, "not-json"),
        (b'{"Events": []', "not-json"),
        (b"null", "wrong-shape"),
        (b"{}", "wrong-shape"),
        (b'{"error": "not here"}', "wrong-shape"),
        (b'{"Events": [{}]}', "wrong-shape"),
        (b'{"Events": [], "DocumentIncarnation": true}', "wrong-shape"),
    ],
    ids=lambda value: repr(value[:50]),
)
async def test_what_is_no_document_is_a_problem_and_never_emptiness(body, expected):
    assert await reason(http(body=body)) == expected


async def test_half_a_surrogate_pair_does_not_reach_the_journal():
    event = json.dumps({**EVENT, "Description": "\ud800!"})
    answer = await fetched(http(body=f'{{"Events": [{event}]}}'))
    assert isinstance(answer, Answer)
    assert answer.document is not None
    description = answer.document.events[0].description
    assert description is not None
    assert description.encode().endswith(b"!")


async def test_a_body_of_a_mebibyte_is_read_and_one_byte_more_is_too_large():
    padding = b" " * (LARGEST_BODY - len(json.dumps(QUIET)))
    fits = json.dumps(QUIET).encode() + padding
    assert isinstance(await fetched(http(body=fits)), Answer)
    assert await reason(http(body=fits + b" ")) == "too-large"


async def test_an_endless_body_is_left_in_the_middle():
    endless = FarSide(b"HTTP/1.1 200 OK\r\n\r\n", parts=[b" " * 65536] * 1000)
    async with endless as side, client(side.url) as metadata:
        problem = await metadata.fetch()
    assert isinstance(problem, Problem)
    assert problem.reason == "too-large"
    assert side.sent < 1000


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
    ],
)
async def test_an_answer_that_breaks_off_is_truncated(answer):
    assert await reason(answer, hang_up=True) == "truncated"


@pytest.mark.parametrize("how", [{"hang_up": True}, {"reset": True}])
async def test_a_connection_closed_without_an_answer_is_reset(how):
    assert await reason(None, **how) == "reset"


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n{}",
    ],
    ids=lambda answer: repr(answer[:35]),
)
async def test_what_is_not_http_says_so(answer):
    assert await reason(answer, hang_up=True) == "not-http"


async def test_a_compressed_body_that_nobody_asked_for_is_not_unpacked():
    assert await reason(http(body=b"\x1f\x8b\x08\x00", Content_Encoding="gzip")) == "not-json"


async def test_no_garbage_on_the_wire_raises():
    luck = random.Random(7)
    good = http(body=DOCUMENT, Date="Sun, 15 Nov 2026 18:29:47 GMT", Retry_After="1")

    async def garbled(_: object) -> bytes:
        raw = bytearray(good)
        for _ in range(luck.randint(1, 12)):
            raw[luck.randrange(len(raw))] = luck.randrange(256)
        return bytes(raw[: luck.randint(1, len(raw))])

    async with FarSide(handler=garbled, hang_up=True) as side, client(side.url) as metadata:
        for _ in range(150):
            assert isinstance(await metadata.fetch(), Answer | Problem)
            assert isinstance(await metadata.approve(["A"]), Accepted | Problem)


async def test_nobody_listening_is_unreachable():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with client(f"http://127.0.0.1:{taken.getsockname()[1]}") as metadata:
            problem = await metadata.fetch()
    assert isinstance(problem, Problem)
    assert problem.reason == "unreachable"
    assert "127.0.0.1" in problem.detail


@pytest.mark.skipif(sys.platform != "linux", reason="a full backlog is silent on Linux only")
async def test_a_connection_that_nobody_takes_is_unreachable_and_not_a_timeout():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        async with client(url, connect_timeout=0.1) as metadata:
            problem = await metadata.fetch()
        for one in waiting:
            one.close()
    assert isinstance(problem, Problem)
    assert problem.reason == "unreachable"


@pytest.mark.parametrize("endpoint", ["http://", "nonsense", "http://127.0.0.1:99999", "http://["])
async def test_an_endpoint_that_is_none_is_unreachable(endpoint):
    async with client(endpoint) as metadata:
        problem = await metadata.fetch()
    assert isinstance(problem, Problem)
    assert problem.reason == "unreachable"


async def test_a_password_in_the_endpoint_is_not_repeated():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with client(f"http://me:hunter2@127.0.0.1:{taken.getsockname()[1]}") as metadata:
            problem = await metadata.fetch()
    assert isinstance(problem, Problem)
    assert "hunter2" not in problem.detail


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
        FarSide(handler=slow) as side,
        client(side.url, first_timeout=15, timeout=0.05, connect_timeout=0.2) as metadata,
    ):
        assert isinstance(await metadata.fetch(), Answer)
        late = await metadata.fetch()
    assert isinstance(late, Problem)
    assert late.reason == "timeout"


async def test_a_problem_does_not_end_the_patience_for_the_first_answer():
    answers = iter([http(410), http(503), http(body=QUIET)])

    async def updating(_: object) -> bytes:
        await asyncio.sleep(0.3)
        return next(answers)

    async with (
        FarSide(handler=updating) as side,
        client(side.url, first_timeout=15, timeout=0.01, connect_timeout=0.2) as metadata,
    ):
        got = [await metadata.fetch() for _ in range(3)]
    assert [isinstance(answer, Answer) for answer in got] == [False, False, True]


async def test_after_a_day_of_silence_there_is_patience_again():
    now = [0.0]

    async def slow(_: object) -> bytes:
        await asyncio.sleep(0.3)
        return http(body=QUIET)

    async with (
        FarSide(handler=slow) as side,
        client(
            side.url, first_timeout=15, timeout=0.01, connect_timeout=0.2, clock=lambda: now[0]
        ) as metadata,
    ):
        assert isinstance(await metadata.fetch(), Answer)
        now[0] = 23 * 3600.0
        assert isinstance(await metadata.fetch(), Problem)
        now[0] = 25 * 3600.0
        assert isinstance(await metadata.fetch(), Answer)


async def test_a_body_that_drips_does_not_hold_the_bridge_for_ever():
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    async with (
        FarSide(head, parts=[b" "] * 1000, pause=0.02) as side,
        client(side.url, first_timeout=0.2, connect_timeout=0.5) as metadata,
    ):
        problem = await metadata.fetch()
    assert isinstance(problem, Problem)
    assert problem.reason == "timeout"


async def test_a_redirect_is_a_problem_and_its_target_is_never_contacted():
    async with FarSide(http(body=DOCUMENT)) as trap:
        answer = http(302, Location=f"{trap.url}/metadata/scheduledevents")
        async with FarSide(answer) as side, client(side.url) as metadata:
            results = [
                await metadata.fetch(),
                await metadata.approve(["A"]),
                await metadata.instance(),
            ]
    assert [getattr(result, "reason", None) for result in results] == ["redirected"] * 3
    assert trap.connections == 0


async def test_proxy_variables_in_the_environment_are_ignored(monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    async with FarSide(http(body=DOCUMENT)) as trap, FarSide(http(body=QUIET)) as side:
        for name in PROXIES:
            monkeypatch.setenv(name, trap.url)
        async with client(side.url) as metadata:
            await metadata.fetch()
            await metadata.approve(["A"])
    assert len(side.requests) == 2
    assert trap.connections == 0


async def test_cookies_are_not_kept():
    async with (
        FarSide(http(body=QUIET, Set_Cookie="a=b")) as side,
        client(f"http://localhost:{side.port}") as metadata,
    ):
        await metadata.fetch()
        await metadata.fetch()
    assert "cookie" not in side.requests[1].headers


async def test_one_connection_serves_all_requests():
    async with FarSide(http(body=QUIET)) as side, client(side.url) as metadata:
        for _ in range(5):
            await metadata.fetch()
            await metadata.approve(["A"])
    assert side.connections == 1


async def test_a_connection_that_the_service_closed_meanwhile_is_opened_again():
    async with FarSide(http(body=QUIET), hang_up=True) as side, client(side.url) as metadata:
        for _ in range(3):
            assert isinstance(await metadata.fetch(), Answer)
    assert side.connections == 3


async def test_calls_never_overlap_and_waiting_is_no_connect_timeout():
    async def steady(_: object) -> bytes:
        await asyncio.sleep(0.05)
        return http(body=QUIET)

    async with FarSide(handler=steady) as side, client(side.url, connect_timeout=0.25) as metadata:
        calls = [metadata.fetch() for _ in range(4)] + [metadata.approve(["A"]) for _ in range(4)]
        results = await asyncio.gather(*calls)
    assert [result for result in results if isinstance(result, Problem)] == []
    assert len(side.requests) == 8
    assert side.at_once == 1


async def test_an_approval_goes_before_all_reads_that_still_wait():
    go = asyncio.Event()

    async def gated(_: object) -> bytes:
        await go.wait()
        return http(body=QUIET)

    async with FarSide(handler=gated) as side, client(side.url) as metadata:
        reads = [asyncio.create_task(metadata.fetch()) for _ in range(10)]
        for _ in range(1000):
            if side.requests:
                break
            await asyncio.sleep(0.005)
        approval = asyncio.create_task(metadata.approve(["A"]))
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(approval, *reads)
    assert [request.method for request in side.requests].index("POST") == 1


async def test_polls_approvals_and_the_vm_share_one_budget():
    now = [50.0]
    left: list[float] = []

    async def sleep(seconds: float) -> None:
        now[0] += seconds

    async def stamped(_: object) -> bytes:
        left.append(now[0])
        return http(body={**QUIET, "compute": {}})

    budget = Budget(clock=lambda: now[0], sleep=sleep)
    async with FarSide(handler=stamped) as side, client(side.url, budget=budget) as metadata:
        calls = [
            call
            for _ in range(6)
            for call in (metadata.fetch(), metadata.approve(["A"]), metadata.instance())
        ]
        await asyncio.gather(*calls)
    assert len(left) == 18
    assert all(later - earlier >= 1.0 for earlier, later in zip(left, left[5:], strict=False))


async def test_a_call_that_is_cancelled_leaves_the_wire_to_the_next():
    silent = Silent()
    async with FarSide(handler=silent) as side, client(side.url) as metadata:
        call = asyncio.create_task(metadata.fetch())
        for _ in range(1000):
            if side.requests:
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
