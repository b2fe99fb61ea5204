"""Any answer that is not a document is a problem with a reason, and never an empty document."""

import json
import random
import socket
import sys

import pytest
from support.canned_server import CannedServer, http
from support.metadata_client import DOCUMENT, EVENT, QUIET, chosen, client, fetched, reason
from support.ports import free_ports
from support.turns import turns

from bridge.metadata.answers import Accepted, Answer, SourceProblem
from bridge.metadata.client import LARGEST_BODY, LARGEST_DOCUMENT


async def test_a_status_that_is_an_error_is_a_problem_for_all_three_calls():
    answer = http(429, {"error": "slow down"}, Retry_After="3")
    async with CannedServer(answer) as server, client(server.url) as metadata:
        for problem in (
            await metadata.fetch(),
            await metadata.approve(chosen("A")),
            await metadata.instance(),
        ):
            assert isinstance(problem, SourceProblem)
            assert (problem.reason, problem.retry_after) == ("throttled", 3.0)
            assert "slow down" in problem.detail


async def test_a_refused_connection_is_explained_in_words():
    [port] = free_ports(1)
    async with client(f"http://127.0.0.1:{port}") as metadata:
        problem = await metadata.fetch()
    assert isinstance(problem, SourceProblem)
    assert problem.detail.endswith(": Connection refused.")


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
async def test_an_invalid_document_is_a_problem_and_never_empty(body, expected):
    assert await reason(http(body=body)) == expected


async def test_half_a_surrogate_pair_does_not_reach_the_journal():
    event = json.dumps({**EVENT, "Description": "\ud800!"})
    answer = await fetched(http(body=f'{{"Events": [{event}]}}'))
    assert isinstance(answer, Answer)
    assert answer.document is not None
    description = answer.document.events[0].description
    assert description is not None
    assert description.encode().endswith(b"!")


async def test_a_document_of_16_mebibytes_is_read_and_one_byte_more_is_too_large():
    padding = b" " * (LARGEST_DOCUMENT - len(json.dumps(QUIET)))
    fits = json.dumps(QUIET).encode() + padding
    assert len(fits) == 16 * 1024 * 1024
    assert isinstance(await fetched(http(body=fits)), Answer)
    assert await reason(http(body=fits + b" ")) == "too-large"


async def test_any_other_answer_has_at_most_one_mebibyte():
    long = json.dumps({"error": "no"}).encode().ljust(LARGEST_BODY + 1)
    assert await reason(http(500, long[:-1])) == "server-error"
    problem = await fetched(http(500, long))
    assert isinstance(problem, SourceProblem)
    assert "it says" not in problem.detail
    body = json.dumps({"compute": {"name": "web_0"}}).encode().ljust(LARGEST_BODY + 1)
    async with CannedServer(http(body=body)) as server, client(server.url) as metadata:
        found = await metadata.instance()
    assert isinstance(found, SourceProblem)
    assert found.reason == "too-large"


async def test_a_large_document_does_not_hold_up_the_loop():
    events = [{**EVENT, "EventId": f"{number:036d}"} for number in range(5000)]
    large = http(body={"DocumentIncarnation": 7, "Events": events})
    async with turns() as found:
        answer = await fetched(large)
    assert isinstance(answer, Answer)
    assert answer.document is not None
    assert len(answer.document.events) == 5000
    assert found.longest < found.whole / 2


async def test_an_endless_body_is_cut_off():
    endless = CannedServer(b"HTTP/1.1 200 OK\r\n\r\n", parts=[b" " * 65536] * 1000)
    async with endless as server, client(server.url) as metadata:
        problem = await metadata.fetch()
    assert isinstance(problem, SourceProblem)
    assert problem.reason == "too-large"
    assert server.sent < 1000


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
async def test_an_answer_that_is_not_http_is_reported(answer):
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

    async with (
        CannedServer(handler=garbled, hang_up=True) as server,
        client(server.url) as metadata,
    ):
        for _ in range(150):
            assert isinstance(await metadata.fetch(), Answer | SourceProblem)
            assert isinstance(await metadata.approve(chosen("A")), Accepted | SourceProblem)


async def test_a_port_without_a_listener_is_unreachable():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with client(f"http://127.0.0.1:{taken.getsockname()[1]}") as metadata:
            problem = await metadata.fetch()
    assert isinstance(problem, SourceProblem)
    assert problem.reason == "unreachable"
    assert "127.0.0.1" in problem.detail


@pytest.mark.skipif(sys.platform != "linux", reason="a full backlog is silent on Linux only")
async def test_a_connection_that_is_not_accepted_is_unreachable_and_not_a_timeout():
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
    assert isinstance(problem, SourceProblem)
    assert problem.reason == "unreachable"


@pytest.mark.parametrize("endpoint", ["http://", "nonsense", "http://127.0.0.1:99999", "http://["])
async def test_an_invalid_endpoint_is_unreachable(endpoint):
    async with client(endpoint) as metadata:
        problem = await metadata.fetch()
    assert isinstance(problem, SourceProblem)
    assert problem.reason == "unreachable"


async def test_a_password_in_the_endpoint_is_not_repeated():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with client(f"http://me:hunter2@127.0.0.1:{taken.getsockname()[1]}") as metadata:
            problem = await metadata.fetch()
    assert isinstance(problem, SourceProblem)
    assert "hunter2" not in problem.detail
