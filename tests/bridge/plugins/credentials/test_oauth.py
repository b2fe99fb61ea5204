"""Tokens from an identity provider on loopback, by OAuth 2.0 client credentials."""

import base64
import ssl

import pytest
from aiohttp import web
from pydantic import ValidationError
from support.certificates import issue
from support.token_server import oauth, token_server

from bridge.plugins import OAuth, Unavailable


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


async def test_the_servers_message_is_reported_without_our_secret(server):
    said = {"error": "invalid_client", "error_description": "AADSTS7: no\n 's3cret:/?' here"}
    server.answer = lambda: web.json_response(said, status=401)
    with pytest.raises(Unavailable) as told:
        await oauth(server.url).token()
    host = server.url.removeprefix("http://")
    expected = (
        f"the identity provider at {host} answered 401 (invalid_client: AADSTS7: no '***' here)"
    )
    assert str(told.value) == expected


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


async def test_a_private_authority_of_the_provider_can_be_trusted(tmp_path):
    files = issue(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.server.certificate, files.server.key)
    async with token_server(context=context) as server:
        assert await oauth(server.url, tls={"ca": str(files.authority)}).token() == "token-1"
        with pytest.raises(Unavailable, match=r"cannot be reached: .*certificate verify failed"):
            await oauth(server.url).token()


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
