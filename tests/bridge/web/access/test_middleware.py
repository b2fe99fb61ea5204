"""What is checked before a request is handled, at each address."""

from aiohttp import ClientSession
from support.guarded_bridge import TOKENS, audits, raw
from support.served_bridge import bridge, config


async def test_the_control_socket_may_do_everything_even_if_there_are_tokens(guarded):
    assert (await guarded.control.ask("GET", "/api/v1/events"))[0] == 200
    assert (await guarded.control.ask("POST", "/api/v1/sinks/bus/replay"))[0] == 202


async def test_callers_of_the_control_socket_are_audited(guarded):
    await guarded.control.ask("POST", "/api/v1/sinks/bus/replay")
    (audit,) = await audits(guarded)
    assert (audit["via"], audit["address"]) == ("control", None)
    assert audit["actor"] == "local" or audit["actor"].startswith("uid ")


async def test_probes_need_no_token_on_their_own_address(guarded):
    assert (await guarded.probes.ask("GET", "/readyz"))[0] == 200


async def test_a_rebound_name_does_not_reach_the_bridge(running):
    host = {"headers": {"Host": "evil.example"}}
    for path in ("/", "/api/v1/events", "/metrics"):
        assert (await running.http.ask("GET", path, **host))[0] == 421


async def test_a_page_of_another_origin_cannot_make_a_browser_act(guarded):
    headers = {"Authorization": "Bearer ops-secret"}
    path = "/api/v1/sinks/bus/replay"
    foreign = {**headers, "Origin": "http://evil.example"}
    assert (await guarded.http.ask("POST", path, headers=foreign))[0] == 403
    own = {**headers, "Origin": guarded.http.base}
    assert (await guarded.http.ask("POST", path, headers=own))[0] == 202


async def test_a_body_that_never_arrives_times_out(guarded, monkeypatch):
    monkeypatch.setattr("bridge.web.access.middleware._BODY_PATIENCE", 0.05)
    head = "POST /api/v1/sinks/bus/replay HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
    answer = await raw(guarded, f"{head}Authorization: Bearer ops-secret\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_body_announced_as_too_large_is_refused_before_it_arrives(guarded):
    head = "POST /api/v1/sinks/bus/replay HTTP/1.1\r\nHost: localhost\r\nContent-Length: 65537\r\n"
    answer = await raw(guarded, f"{head}Authorization: Bearer ops-secret\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 413 ")


async def test_http_1_0_without_a_host_is_refused(running):
    assert b" 421 " in (await raw(running, b"GET / HTTP/1.0\r\n\r\n")).split(b"\r\n")[0]


async def test_every_answer_has_the_headers_that_keep_browsers_out(running):
    async with ClientSession() as session:
        for path in ("/api/v1", "/api/v1/events", "/nowhere", "/metrics"):
            async with session.get(running.http.base + path) as answer:
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Cache-Control"] == "no-store"
                assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")
                assert "aiohttp" not in answer.headers["Server"]


async def test_behind_a_proxy_its_host_and_origin_are_ours_and_audits_name_the_caller(tmp_path):
    proxy = {"public_url": "https://bridge.example/seb", "trusted_proxies": ["127.0.0.1"]}
    headers = {
        "Host": "bridge.example",
        "Origin": "https://bridge.example",
        "X-Forwarded-For": "203.0.113.66, 203.0.113.7",
        "Authorization": "Bearer ops-secret",
    }
    replay = "/api/v1/sinks/bus/replay"
    async with bridge(config(tmp_path, tokens=TOKENS, **proxy)) as made:
        assert (await made.http.ask("POST", replay, headers=headers))[0] == 202
        for name, value, status in (("Host", "evil.example", 421), ("Origin", "http://x", 403)):
            wrong = {**headers, name: value}
            assert (await made.http.ask("POST", replay, headers=wrong))[0] == status
        (audit,) = await audits(made)
    assert audit["address"] == "203.0.113.7"


async def test_without_trust_a_caller_cannot_choose_its_address(guarded):
    headers = {"X-Forwarded-For": "203.0.113.7", "Authorization": "Bearer ops-secret"}
    await guarded.http.ask("POST", "/api/v1/sinks/bus/replay", headers=headers)
    (audit,) = await audits(guarded)
    assert audit["address"] == "127.0.0.1"
