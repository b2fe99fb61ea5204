import asyncio
import json

import pytest
from support.prometheus import parse, value
from support.served_bridge import announce, bridge, config, kill

from bridge.common.fields import Secret
from bridge.config import Listen, Token
from bridge.web.access.tokens import bearer, host_is_ours, needed, origin_is_ours, who

TOKENS = [
    {"name": "ops", "token": "ops-secret"},
    {"name": "viewer", "token": "viewer-secret", "scopes": ["read"]},
    {"name": "robot", "token": "robot-secret", "scopes": ["approve"]},
]
LOOPBACK = Listen("127.0.0.1", 17245)


def with_token(token):
    return {"headers": {"Authorization": f"Bearer {token}"}}


@pytest.fixture
async def guarded(tmp_path):
    async with bridge(config(tmp_path, tokens=TOKENS, probes_listen="127.0.0.1:0")) as made:
        yield made


@pytest.fixture
async def open_(tmp_path):
    async with bridge(config(tmp_path)) as made:
        yield made


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Bearer", None),
        ("Bearer ", None),
        ("Basic abc", None),
        ("abc", None),
        (None, None),
    ],
)
def test_a_bearer_token_is_found(header, token):
    assert bearer(header) == token


def test_only_safe_methods_are_reads():
    assert [needed(method) for method in ("GET", "HEAD", "POST", "DELETE", "PUT", "BREW")] == [
        "read",
        "read",
        "approve",
        "approve",
        "approve",
        "approve",
    ]


def test_an_empty_secret_file_lets_nobody_in(tmp_path):
    (tmp_path / "token").write_text("\n")
    token = Token(name="ops", token=Secret(path=tmp_path / "token"))
    assert who("", [token]) == (None, [])


def test_a_secret_file_that_is_missing_never_matches_and_is_named(tmp_path):
    gone = Token(name="gone", token=Secret(path=tmp_path / "gone"))
    good = Token(name="good", token=Secret("right"))
    caller, unreadable = who("right", [gone, good])
    assert caller is not None
    assert caller.name == "good"
    assert [name for name, _ in unreadable] == ["gone"]


def test_a_secret_file_is_read_again(tmp_path):
    file = tmp_path / "token"
    file.write_text("first")
    token = Token(name="ops", token=Secret(path=file))
    assert who("first", [token])[0] is not None
    file.write_text("another one")
    assert who("first", [token])[0] is None
    assert who("another one", [token])[0] is not None


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1:17245", True),
        ("localhost:17245", True),
        ("LOCALHOST", True),
        ("[::1]:17245", True),
        ("127.0.0.1:8080", True),
        ("evil.example:17245", False),
        ("127.0.0.1.evil.example:17245", False),
        ("localhost.evil.example", False),
        ("evil.example@127.0.0.1", True),
        ("127.0.0.1@evil.example", False),
        ("[::1", False),
        ("", False),
        ("127.0.0.1:x", True),
    ],
)
def test_only_names_of_this_machine_reach_loopback(host, ours):
    assert host_is_ours([host], LOOPBACK) is ours


def test_a_request_without_one_host_reaches_nothing_on_loopback():
    assert not host_is_ours([], LOOPBACK)
    assert not host_is_ours(["localhost", "evil.example"], LOOPBACK)


def test_beyond_loopback_tokens_decide_and_any_name_is_fine():
    assert host_is_ours(["vm.example"], Listen("0.0.0.0", 1))


@pytest.mark.parametrize(
    ("origin", "ours"),
    [
        (None, True),
        ("http://127.0.0.1:17245", True),
        ("https://127.0.0.1:17245", False),
        ("http://127.0.0.1:8080", False),
        ("http://evil.example", False),
        ("null", False),
        ("", False),
    ],
)
def test_a_page_must_come_from_here(origin, ours):
    assert origin_is_ours(origin, "http", ["127.0.0.1:17245"]) is ours


async def test_without_tokens_anybody_here_may_read_and_nobody_may_write(open_):
    assert (await open_.http.ask("GET", "/api/v1/events"))[0] == 200
    for method in ("POST", "DELETE", "PUT"):
        status, problem = await open_.http.ask(method, "/api/v1/dead-letters/bus:1/replay")
        assert status == 403
        assert "read-only" in problem["detail"]
    assert (await open_.http.ask("POST", "/api/v1/sinks/bus/replay", **with_token("x")))[0] == 403


async def test_the_control_socket_may_do_everything_even_if_there_are_tokens(guarded):
    assert (await guarded.control.ask("GET", "/api/v1/events"))[0] == 200
    assert (await guarded.control.ask("POST", "/api/v1/sinks/bus/replay"))[0] == 202


async def test_who_used_the_control_socket_is_on_record(guarded):
    await guarded.control.ask("POST", "/api/v1/sinks/bus/replay")
    (audit,) = await audits(guarded)
    assert audit["via"] == "control"
    assert audit["actor"] == "local" or audit["actor"].startswith("uid ")


@pytest.mark.parametrize("path", ["/", "/api/v1/events", "/readyz", "/metrics", "/nowhere"])
async def test_with_tokens_every_read_needs_one(guarded, path):
    async with guarded.http.session.get(guarded.http.base + path) as answer:
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert answer.content_type == "application/problem+json"


async def test_probes_need_no_token_on_their_own_address(guarded):
    assert (await guarded.probes.ask("GET", "/readyz"))[0] == 200


@pytest.mark.parametrize(
    ("token", "read", "write"),
    [
        ("ops-secret", 200, 202),
        ("viewer-secret", 200, 403),
        ("robot-secret", 403, 202),
        ("ops-secre", 401, 401),
        ("ops-secretx", 401, 401),
        ("OPS-SECRET", 401, 401),
        ("%C3%A9", 401, 401),
    ],
)
async def test_a_token_may_do_what_its_scopes_say(guarded, token, read, write):
    got = await guarded.http.ask("GET", "/api/v1/events", **with_token(token))
    assert got[0] == read
    got = await guarded.http.ask("POST", "/api/v1/sinks/bus/replay", **with_token(token))
    assert got[0] == write


async def test_the_actor_of_a_replay_is_the_name_of_the_token(guarded):
    (told,) = await announce(guarded.journal, "E1")
    await kill(guarded.journal, "bus", told)
    path = "/api/v1/dead-letters/bus:1/replay"
    assert (await guarded.http.ask("POST", path, **with_token("ops-secret")))[0] == 202
    (audit,) = await audits(guarded)
    assert (audit["actor"], audit["via"]) == ("ops", "http")


async def audits(running):
    rows = await running.journal.run(
        lambda store: store.connection.execute(
            "SELECT body FROM outbox WHERE type LIKE '%audited%' ORDER BY seq"
        ).fetchall()
    )
    return [json.loads(body)["data"] for (body,) in rows]


async def test_refused_tokens_are_counted_and_audited_once_a_minute(guarded, caplog):
    for _ in range(5):
        status, _ = await guarded.http.ask("GET", "/api/v1/events", **with_token("guess-123"))
        assert status == 401
    (audit,) = await audits(guarded)
    assert (audit["action"], audit["actor"], audit["via"]) == ("token.refused", "unknown", "http")
    assert "guess-123" not in json.dumps(audit)
    assert "guess-123" not in caplog.text
    _, text = await guarded.probes.ask("GET", "/metrics")
    assert value(parse(text), "seb_tokens_refused_total") == 5


async def test_tokens_can_change_while_the_bridge_runs(guarded, tmp_path):
    guarded.runtime.config = config(tmp_path, tokens=["another"])
    assert (await guarded.http.ask("GET", "/", **with_token("ops-secret")))[0] == 401
    assert (await guarded.http.ask("GET", "/", **with_token("another")))[0] == 200


async def test_a_rebound_name_does_not_reach_the_bridge(open_):
    host = {"headers": {"Host": "evil.example"}}
    for path in ("/", "/api/v1/events", "/metrics"):
        assert (await open_.http.ask("GET", path, **host))[0] == 421


async def test_a_page_of_another_origin_cannot_make_a_browser_act(guarded):
    headers = {"Authorization": "Bearer ops-secret"}
    path = "/api/v1/sinks/bus/replay"
    foreign = {**headers, "Origin": "http://evil.example"}
    assert (await guarded.http.ask("POST", path, headers=foreign))[0] == 403
    own = {**headers, "Origin": guarded.http.base}
    assert (await guarded.http.ask("POST", path, headers=own))[0] == 202


async def test_a_body_that_never_comes_is_not_waited_for(guarded, monkeypatch):
    monkeypatch.setattr("bridge.web.access.middleware._BODY_PATIENCE", 0.05)
    head = "POST /api/v1/sinks/bus/replay HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
    answer = await raw(guarded, f"{head}Authorization: Bearer ops-secret\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_body_that_is_announced_too_large_is_not_waited_for(guarded):
    head = "POST /api/v1/sinks/bus/replay HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n"
    answer = await raw(guarded, f"{head}Authorization: Bearer ops-secret\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("length", ["Content-Length: 9", "Transfer-Encoding: chunked"])
async def test_who_hangs_up_in_the_middle_of_a_body_is_no_line_in_the_log(guarded, caplog, length):
    head = f"POST /api/v1/sinks/bus/replay HTTP/1.1\r\nHost: localhost\r\n{length}\r\n"
    at = guarded.served.http
    _, writer = await asyncio.open_connection(at.host, at.port)
    writer.write(f"{head}Authorization: Bearer ops-secret\r\n\r\n9\r\n{{".encode())
    await writer.drain()
    await asyncio.sleep(0.05)  # so that the bridge waits for the rest when the line goes dead
    writer.transport.abort()
    await asyncio.sleep(0.05)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def raw(running, data):
    reader, writer = await asyncio.open_connection(
        running.served.http.host, running.served.http.port
    )
    writer.write(data)
    if not data:
        writer.write_eof()
    answer = await asyncio.wait_for(reader.read(65536), 10)
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"",
    ],
)
async def test_garbage_is_refused_quietly_and_the_next_request_is_served(open_, data, caplog):
    answer = await raw(open_, data)
    assert answer == b"" or answer.startswith((b"HTTP/1.0 4", b"HTTP/1.1 4"))
    assert b"Traceback" not in answer
    assert caplog.records == []
    assert (await open_.http.ask("GET", "/readyz"))[0] == 200


async def test_http_1_0_without_a_host_is_refused(open_):
    assert b" 421 " in (await raw(open_, b"GET / HTTP/1.0\r\n\r\n")).split(b"\r\n")[0]
