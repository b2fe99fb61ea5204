"""Who may call over HTTP with a token."""

import json

import pytest
from support.guarded_bridge import audits, with_token
from support.prometheus import parse, value
from support.served_bridge import announce, config, kill


async def test_without_tokens_anyone_on_this_machine_may_read_and_nobody_may_write(running):
    assert (await running.http.ask("GET", "/api/v1/events"))[0] == 200
    for method in ("POST", "DELETE", "PUT"):
        status, problem = await running.http.ask(method, "/api/v1/dead-letters/bus:1/replay")
        assert status == 403
        assert "read-only" in problem["detail"]
    assert (await running.http.ask("POST", "/api/v1/sinks/bus/replay", **with_token("x")))[0] == 403


@pytest.mark.parametrize("path", ["/api/v1", "/api/v1/events", "/readyz", "/metrics", "/nowhere"])
async def test_with_tokens_every_read_needs_one(guarded, path):
    async with guarded.http.session.get(guarded.http.base + path) as answer:
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert answer.content_type == "application/problem+json"


@pytest.mark.parametrize(
    ("token", "read", "vote", "operate"),
    [
        ("ops-secret", 200, 503, 202),
        ("viewer-secret", 200, 403, 403),
        ("robot-secret", 403, 503, 403),
        ("operator-secret", 403, 403, 202),
        ("plain-secret", 200, 503, 403),
        ("ops-secre", 401, 401, 401),
        ("ops-secretx", 401, 401, 401),
        ("OPS-SECRET", 401, 401, 401),
        ("%C3%A9", 401, 401, 401),
    ],
)
async def test_a_token_may_do_what_its_scopes_say(guarded, token, read, vote, operate):
    async def ask(method, path):
        return (await guarded.http.ask(method, path, **with_token(token)))[0]

    assert await ask("GET", "/api/v1/events") == read
    assert await ask("POST", "/api/v1/approvals") == vote, "503: this bridge takes no votes yet"
    assert await ask("POST", "/api/v1/sinks/bus/replay") == operate


CHANGES = (
    ("POST", "/api/v1/sinks/bus/replay"),
    ("POST", "/api/v1/sinks/bus/resume"),
    ("POST", "/api/v1/dead-letters/bus:1/replay"),
    ("DELETE", "/api/v1/dead-letters/bus:1"),
    ("POST", "/api/v1/drills"),
    ("DELETE", "/api/v1/drills/E1"),
    ("POST", "/api/v1/reload"),
    ("PUT", "/api/v1/approvals"),
)


@pytest.mark.parametrize("token", ["plain-secret", "robot-secret", "viewer-secret"])
@pytest.mark.parametrize(("method", "path"), CHANGES)
async def test_only_the_scope_operate_allows_changes_other_than_votes(guarded, token, method, path):
    (told,) = await announce(guarded.journal, "E1")
    await kill(guarded.journal, "bus", told)
    status, problem = await guarded.http.ask(method, path, **with_token(token))
    assert status == 403
    assert "needs the scope operate" in problem["detail"]
    (audit,) = await audits(guarded)
    assert audit["action"] == "token.refused", "nothing else happened"


@pytest.mark.parametrize(("method", "path"), CHANGES)
async def test_the_control_socket_keeps_all_rights(guarded, method, path):
    assert (await guarded.control.ask(method, path))[0] not in {401, 403}


async def test_the_actor_of_a_replay_is_the_name_of_the_token(guarded):
    (told,) = await announce(guarded.journal, "E1")
    await kill(guarded.journal, "bus", told)
    path = "/api/v1/dead-letters/bus:1/replay"
    assert (await guarded.http.ask("POST", path, **with_token("ops-secret")))[0] == 202
    (audit,) = await audits(guarded)
    assert (audit["actor"], audit["via"]) == ("ops", "http")
    assert (audit["address"], audit["outcome"]) == ("127.0.0.1", "success")


async def test_refused_tokens_are_counted_and_audited_once_a_minute(guarded, caplog):
    for _ in range(5):
        status, _ = await guarded.http.ask("GET", "/api/v1/events", **with_token("guess-123"))
        assert status == 401
    (audit,) = await audits(guarded)
    assert (audit["action"], audit["actor"], audit["via"]) == ("token.refused", "unknown", "http")
    assert (audit["address"], audit["outcome"]) == ("127.0.0.1", "failure")
    assert "guess-123" not in json.dumps(audit)
    assert "guess-123" not in caplog.text
    _, text = await guarded.probes.ask("GET", "/metrics")
    assert value(parse(text), "seb_tokens_refused_total") == 5


async def test_tokens_can_change_while_the_bridge_runs(guarded, tmp_path):
    guarded.runtime.config = config(tmp_path, tokens=["another"])
    assert (await guarded.http.ask("GET", "/api/v1", **with_token("ops-secret")))[0] == 401
    assert (await guarded.http.ask("GET", "/api/v1", **with_token("another")))[0] == 200
