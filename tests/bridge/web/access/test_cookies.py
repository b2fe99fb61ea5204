"""The cookie of a session: a name for each port, found even behind one that somebody planted."""

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from bridge.config.values import PublicUrl
from bridge.web.access.cookies import cookie_names, give, session_ids, session_key


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("127.0.0.1:17245", "seb-session-17245"),
        ("[::1]:8080", "seb-session-8080"),
        ("localhost", "seb-session-default"),
        ("127.0.0.1:99999999", "seb-session-default"),
    ],
)
def test_the_name_has_the_port_that_the_browser_uses(host, name):
    assert cookie_names(host, secure=False) == [f"__Host-{name}", name]
    assert cookie_names(host, secure=True) == [f"__Host-{name}"]


@pytest.mark.parametrize(
    ("origin", "secure"),
    [("https://bridge.example", True), ("http://plain.example", False), ("http://h:9", False)],
)
def test_behind_a_proxy_with_tls_the_cookie_is_secure(origin, secure):
    public = [
        PublicUrl.parse(url) for url in ("https://bridge.example/seb", "http://plain.example")
    ]
    headers, response = {"Host": "h:9", "Origin": origin}, web.Response()
    give(response, make_mocked_request("POST", "/", headers=headers), "id", public)
    [(name, cookie)] = response.cookies.items()
    assert (name.startswith("__Host-"), bool(cookie["secure"])) == (secure, secure)
    request = make_mocked_request("GET", "/", headers={"Host": "h:9", "Cookie": f"{name}=id"})
    assert list(session_ids(request)) == ["id"]


def test_every_value_of_our_cookie_is_tried_and_no_other_cookie():
    cookie = "seb-session-9=planted; theme=dark; seb-session-10=other; seb-session-9=real"
    request = make_mocked_request("GET", "/", headers={"Host": "localhost:9", "Cookie": cookie})
    assert list(session_ids(request)) == ["planted", "real"]


def test_a_heap_of_cookies_is_not_tried_to_the_end():
    cookie = ";".join(["seb-session-default=x"] * 100)
    request = make_mocked_request("GET", "/", headers={"Host": "localhost", "Cookie": cookie})
    assert len(list(session_ids(request))) == 8


@pytest.mark.parametrize(
    ("path", "key"),
    [("/api/v1/stream?key=k", "k"), ("/api/v1/events?key=k", None), ("/api/v1/stream", None)],
)
def test_only_a_stream_takes_its_key_from_the_address(path, key):
    assert session_key(make_mocked_request("GET", path)) == key
