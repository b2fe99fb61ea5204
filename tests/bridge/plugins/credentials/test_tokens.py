"""Tokens, from a real identity provider and metadata service on loopback."""

import asyncio
import base64
import logging
import ssl
import time
from types import SimpleNamespace

import pytest
from aiohttp import web
from pydantic import ValidationError
from support.certificates import issue
from support.token_server import granted, token_server

from bridge.plugins import ManagedIdentity, OAuth, TokenSource, Unavailable
from bridge.plugins.credentials import tokens
from bridge.simulator import Scenario, Simulator


@pytest.fixture
async def server():
    async with token_server() as served:
        yield served


def oauth(url: str, **keys) -> OAuth:
    given = {"token_url": f"{url}/token", "client_id": "seb", "client_secret": "s3cret:/?", **keys}
    return OAuth.model_validate(given)


def identity(url: str, **keys) -> ManagedIdentity:
    return ManagedIdentity.model_validate({"resource": "https://a.b/", "endpoint": url, **keys})


BOTH = pytest.mark.parametrize("source", [oauth, identity])


async def test_the_secret_goes_into_the_header_form_encoded(server):
    assert await oauth(server.url, scope="a b", audience="x").token() == "token-1"
    [(request, form)] = server.asked
    assert (request.method, request.path) == ("POST", "/token")
    assert form == {"grant_type": "client_credentials", "scope": "a b", "audience": "x"}
    scheme, pair = request.headers["Authorization"].split()
    assert (scheme, base64.b64decode(pair)) == ("Basic", b"seb:s3cret%3A%2F%3F")


async def test_the_secret_goes_into_the_body_where_the_provider_wants_it(server):
    await oauth(server.url, secret_in="body").token()
    [(request, form)] = server.asked
    assert "Authorization" not in request.headers
    secret = {"client_id": "seb", "client_secret": "s3cret:/?"}
    assert form == {"grant_type": "client_credentials", **secret}


async def test_the_metadata_service_is_asked_as_azure_says(server):
    assert await identity(server.url, client_id="user assigned").token() == "token-1"
    [(request, _)] = server.asked
    assert (request.method, request.path) == ("GET", "/metadata/identity/oauth2/token")
    assert request.headers["Metadata"] == "true"
    assert dict(request.query) == {
        "api-version": "2018-02-01",
        "resource": "https://a.b/",
        "client_id": "user assigned",
    }


async def test_the_simulator_gives_a_token_too():
    async with Simulator(Scenario(strict=True)) as simulator:
        assert (await identity(simulator.endpoint).token()).startswith("simulated.")


def test_a_managed_identity_asks_at_the_well_known_address():
    assert ManagedIdentity(resource="x").endpoint == "http://169.254.169.254"


@BOTH
async def test_a_token_is_kept_and_shared_by_equal_settings(server, source):
    for _ in range(3):
        assert await source(server.url).token() == "token-1"
    await source(server.url, client_id="another").token()
    assert len(server.asked) == 2


@BOTH
async def test_all_who_ask_at_once_cause_one_request(server, source):
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


async def test_all_who_ask_at_once_hear_of_one_failure(server):
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


async def test_one_who_gives_up_does_not_spoil_it_for_the_others(server):
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
async def test_a_token_is_renewed_shortly_before_it_ends(server, clock, expires_in, kept, renewed):
    server.answer = lambda: granted(f"token-{len(server.asked)}", expires_in=expires_in)
    for moment, expected in ((0, "token-1"), (kept, "token-1"), (renewed, "token-2")):
        clock[0] = moment
        assert await oauth(server.url).token() == expected


async def test_a_token_that_still_holds_serves_while_it_cannot_be_renewed(server, clock):
    server.answer = lambda: granted(expires_in=3600)
    source = oauth(server.url)
    await source.token()
    server.answer = lambda: web.Response(status=500)
    clock[0] = 3500
    assert await source.token() == "token-1"
    clock[0] = 3601
    with pytest.raises(Unavailable, match="answered 500"):
        await source.token()


async def test_a_token_that_was_not_taken_is_forgotten(server):
    source = oauth(server.url)
    await source.token()
    source.forget()
    await source.token()
    assert len(server.asked) == 2


@BOTH
@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 429, 500, 502, 503, 302])
async def test_whatever_is_not_ok_is_unavailable(server, source, status):
    server.answer = lambda: web.Response(status=status, headers={"Location": "/elsewhere"})
    with pytest.raises(Unavailable, match=f"answered {status}"):
        await source(server.url).token()
    assert len(server.asked) == 1, "a redirect is not followed"


async def test_the_servers_own_words_are_passed_on_without_our_secret(server):
    said = {"error": "invalid_client", "error_description": "AADSTS7: no\n 's3cret:/?' here"}
    server.answer = lambda: web.json_response(said, status=401)
    with pytest.raises(Unavailable) as told:
        await oauth(server.url).token()
    host = server.url.removeprefix("http://")
    expected = (
        f"the identity provider at {host} answered 401 (invalid_client: AADSTS7: no '***' here)"
    )
    assert str(told.value) == expected


async def test_a_vm_without_the_identity_is_asked_about_it(server):
    said = {"error": "invalid_request", "error_description": "Identity not found"}
    server.answer = lambda: web.json_response(said, status=400)
    with pytest.raises(Unavailable, match=r"Identity not found\); does this VM have the managed"):
        await identity(server.url).token()


@pytest.mark.parametrize(("header", "wait"), [("7", 7.0), ("soon", None), ("-1", None)])
async def test_the_server_may_say_when_to_come_back(server, header, wait):
    server.answer = lambda: web.Response(status=429, headers={"Retry-After": header})
    with pytest.raises(Unavailable, match="is busy") as told:
        await identity(server.url).token()
    assert told.value.retry_after == wait


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


async def test_a_silent_server_is_not_waited_for_without_end(server, monkeypatch):
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


async def test_a_secret_that_cannot_be_read_is_unavailable(server, tmp_path):
    path = tmp_path / "secret"
    source = oauth(server.url, client_secret={"file": str(path)})
    with pytest.raises(Unavailable, match=r"client_secret cannot be read from .*secret: No such"):
        await source.token()
    path.write_bytes(b"\xff")
    with pytest.raises(Unavailable, match="client_secret is not UTF-8"):
        await source.token()
    path.write_text("\n")
    with pytest.raises(Unavailable, match="client_secret is empty"):
        await source.token()
    assert server.asked == []


async def test_a_proxy_of_the_environment_is_not_used(server, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert await identity(server.url).token() == "token-1"


async def test_a_private_authority_of_the_provider_can_be_trusted(tmp_path):
    files = issue(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.server.certificate, files.server.key)
    async with token_server(context=context) as server:
        assert await oauth(server.url, tls={"ca": str(files.authority)}).token() == "token-1"
        with pytest.raises(Unavailable, match=r"cannot be reached: .*certificate verify failed"):
            await oauth(server.url).token()


async def test_neither_token_nor_secret_is_ever_shown(server, caplog):
    caplog.set_level(logging.DEBUG)
    server.answer = lambda: granted("hush-hush", expires_in=60)
    source = oauth(server.url)
    await source.token()
    shown = caplog.text + repr(source) + repr(source._kept()) + source.model_dump_json()
    assert "hush-hush" not in shown
    assert "s3cret" not in shown


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://login.example/token", "in clear text; write https"),
        ("ftp://login.example/token", "is not a token URL"),
        ("https:///token", "is not a token URL"),
        ("https://me@login.example/token", "is not a token URL"),
        ("https://login.example:x/token", "is not a token URL"),
        ("login.example", "is not a token URL"),
    ],
)
def test_a_token_url_must_keep_the_secret_safe(url, why):
    with pytest.raises(ValidationError, match=why):
        OAuth.model_validate({"token_url": url, "client_id": "a", "client_secret": "b"})


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost", "[::1]:8080"])
def test_http_is_for_loopback(host):
    given = {"token_url": f"http://{host}/t", "client_id": "a", "client_secret": "b"}
    assert OAuth.model_validate(given).token_url == given["token_url"]


@pytest.mark.parametrize(
    "endpoint",
    ["http://10.0.0.1", "http://metadata.example", "https://127.0.0.1", "http://127.0.0.1/x", "x"],
)
def test_the_metadata_service_is_near_or_refused(endpoint):
    with pytest.raises(ValidationError, match="link-local or loopback"):
        ManagedIdentity.model_validate({"resource": "x", "endpoint": endpoint})


def test_a_token_source_says_how_to_fetch():
    with pytest.raises(TypeError, match="fetch"):
        TokenSource()
