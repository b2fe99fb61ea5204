"""The HTTP client of sinks: it keeps to itself, and says in words why there was no answer."""

import errno
import ssl

import aiohttp
import pytest

from sinks import _http


async def test_the_client_has_no_cookies_and_reads_no_proxy_from_the_environment(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with _http.client(3, {"X-Ours": "1"}) as http:
        assert isinstance(http.cookie_jar, aiohttp.DummyCookieJar)
        assert not http.trust_env
        assert http.connector is not None
        assert http.connector.limit == 3
        assert http.headers["User-Agent"].startswith("scheduled-events-bridge/")
        assert http.headers["X-Ours"] == "1"


def caused(by):
    error = aiohttp.ClientOSError(errno.EPIPE, "it broke")
    error.__cause__ = by
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (aiohttp.ServerDisconnectedError(), _http.HUNG_UP),
        (ConnectionResetError(), _http.BROKEN),
        (OSError(errno.EPIPE, "Broken pipe"), _http.BROKEN),
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "Network is unreachable"),
        (TimeoutError(), "no connection within 5 s"),
        (ValueError("https://user:secret@host"), "ValueError"),
    ],
)
def test_what_aiohttp_raises_is_said_in_words_that_hold_no_secret(error, said):
    assert _http.why(error) == said


def test_a_refused_certificate_is_reported_even_inside_another_error():
    inner = ssl.SSLCertVerificationError("self-signed certificate")
    assert _http.why(caused(inner)) == _http.why(inner)
