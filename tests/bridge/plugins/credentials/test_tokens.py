"""Tokens of every source: kept, renewed, shared and never shown."""

import asyncio
import logging
import time
from types import SimpleNamespace

import pytest
from aiohttp import web
from support.token_server import granted, identity, oauth

from bridge.plugins import TokenSource, Unavailable
from bridge.plugins.credentials import tokens

BOTH = pytest.mark.parametrize("source", [oauth, identity])


@BOTH
async def test_a_token_is_kept_and_shared_by_equal_settings(server, source):
    for _ in range(3):
        assert await source(server.url).token() == "token-1"
    await source(server.url, client_id="another").token()
    assert len(server.asked) == 2


@BOTH
async def test_concurrent_callers_cause_one_request(server, source):
    gate = asyncio.Event()

    async def slow():
        await gate.wait()
        return granted(expires_in=3600)

    server.answer = slow
    asking = [asyncio.ensure_future(source(server.url).token()) for _ in range(20)]
    await asyncio.wait(asking, timeout=0.1)
    gate.set()
    assert await asyncio.gather(*asking) == ["token-1"] * 20
    assert len(server.asked) == 1


async def test_concurrent_callers_get_the_same_failure(server):
    gate = asyncio.Event()

    async def slow():
        await gate.wait()
        return web.Response(status=503)

    server.answer = slow
    asking = [asyncio.ensure_future(oauth(server.url).token()) for _ in range(20)]
    await asyncio.wait(asking, timeout=0.1)
    gate.set()
    heard = await asyncio.gather(*asking, return_exceptions=True)
    assert {str(each) for each in heard} == {str(heard[0])}
    assert all(isinstance(each, Unavailable) for each in heard)
    assert len(server.asked) == 1
    server.answer = granted
    assert await oauth(server.url).token() == "token-1"


async def test_a_canceled_caller_does_not_affect_the_others(server):
    gate = asyncio.Event()

    async def slow():
        await gate.wait()
        return granted()

    server.answer = slow
    first, second = (asyncio.ensure_future(oauth(server.url).token()) for _ in range(2))
    await asyncio.wait([first, second], timeout=0.1)
    first.cancel()
    gate.set()
    assert await second == "token-1"
    assert first.cancelled()


@pytest.fixture
def clock(monkeypatch):
    """Time that the test moves."""
    moved = [0.0]
    clock = SimpleNamespace(time=lambda: time.time() + moved[0], monotonic=time.monotonic)
    monkeypatch.setattr(tokens, "time", clock)
    return moved


@pytest.mark.parametrize(
    ("expires_in", "kept", "renewed"),
    [(3600, 3290, 3310), ("7200", 6890, 6910), (100, 75, 85), (None, 40, 55), ("x", 40, 55)],
)
async def test_a_token_is_renewed_shortly_before_it_expires(
    server, clock, expires_in, kept, renewed
):
    server.answer = lambda: granted(f"token-{len(server.asked)}", expires_in=expires_in)
    for moment, expected in ((0, "token-1"), (kept, "token-1"), (renewed, "token-2")):
        clock[0] = moment
        assert await oauth(server.url).token() == expected


async def test_a_valid_token_is_used_while_it_cannot_be_renewed(server, clock):
    server.answer = lambda: granted(expires_in=3600)
    source = oauth(server.url)
    await source.token()
    server.answer = lambda: web.Response(status=500)
    clock[0] = 3500
    assert await source.token() == "token-1"
    clock[0] = 3601
    with pytest.raises(Unavailable, match="answered 500"):
        await source.token()


async def test_a_refused_token_is_forgotten(server):
    source = oauth(server.url)
    await source.token()
    source.forget()
    await source.token()
    assert len(server.asked) == 2


@BOTH
@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 429, 500, 502, 503, 302])
async def test_any_other_status_is_unavailable(server, source, status):
    server.answer = lambda: web.Response(status=status, headers={"Location": "/elsewhere"})
    with pytest.raises(Unavailable, match=f"answered {status}"):
        await source(server.url).token()
    assert len(server.asked) == 1, "a redirect is not followed"


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"null", b"{", b"{}", b"[" * 20000, b"\xff"),
        *(b'{"access_token": 5}', b'{"access_token": ""}'),
        *(b'{"access_token": "two words"}', b'{"access_token": "a\\u0001b"}'),
    ],
)
async def test_an_answer_without_a_usable_token_is_unavailable(server, body):
    server.answer = lambda: web.Response(body=body)
    with pytest.raises(Unavailable, match="answered without an access token"):
        await oauth(server.url).token()


async def test_an_endless_answer_is_cut_off(server):
    server.answer = lambda: web.Response(body=b" " * (tokens.LARGEST_ANSWER + 1))
    with pytest.raises(Unavailable, match="answered with more than 65536 bytes"):
        await oauth(server.url).token()


async def test_waiting_for_a_silent_server_ends(server, monkeypatch):
    async def never():
        await asyncio.Event().wait()

    monkeypatch.setattr(tokens, "TIMEOUT", 0.1)
    server.answer = never
    with pytest.raises(Unavailable, match=r"did not answer within 0\.1 s"):
        await oauth(server.url).token()


@BOTH
async def test_a_server_that_is_not_there_is_unavailable(source):
    with pytest.raises(Unavailable, match=r"at 127\.0\.0\.1:1 cannot be reached"):
        await source("http://127.0.0.1:1").token()


async def test_neither_token_nor_secret_is_ever_shown(server, caplog):
    caplog.set_level(logging.DEBUG)
    server.answer = lambda: granted("hush-hush", expires_in=60)
    source = oauth(server.url)
    await source.token()
    shown = caplog.text + repr(source) + repr(source._kept()) + source.model_dump_json()
    assert "hush-hush" not in shown
    assert "s3cret" not in shown


def test_a_token_source_says_how_to_fetch():
    with pytest.raises(TypeError, match="fetch"):
        TokenSource()  # type: ignore[abstract]  # that is what is tried
