"""The cookie of a session: a name for each port, found even behind one that somebody planted."""

import pytest
from aiohttp.test_utils import make_mocked_request

from bridge.web.access.cookies import cookie_name, session_ids, session_key


@pytest.mark.parametrize(
    ("host", "secure", "name"),
    [
        ("127.0.0.1:17245", False, "seb-session-17245"),
        ("[::1]:8080", False, "seb-session-8080"),
        ("localhost", False, "seb-session-80"),
        ("console.example", True, "__Host-seb-session-443"),
        ("127.0.0.1:99999999", False, "seb-session-80"),
    ],
)
def test_the_name_has_the_port_that_the_browser_uses(host, secure, name):
    assert cookie_name(host, secure=secure) == name


def test_every_value_of_our_cookie_is_tried_and_no_other_cookie():
    cookie = "seb-session-9=planted; theme=dark; seb-session-10=other; seb-session-9=real"
    request = make_mocked_request("GET", "/", headers={"Host": "localhost:9", "Cookie": cookie})
    assert list(session_ids(request)) == ["planted", "real"]


def test_a_heap_of_cookies_is_not_tried_to_the_end():
    cookie = ";".join(["seb-session-80=x"] * 100)
    request = make_mocked_request("GET", "/", headers={"Host": "localhost", "Cookie": cookie})
    assert len(list(session_ids(request))) == 8


@pytest.mark.parametrize(
    ("path", "key"),
    [("/api/v1/stream?key=k", "k"), ("/api/v1/events?key=k", None), ("/api/v1/stream", None)],
)
def test_only_a_stream_takes_its_key_from_the_address(path, key):
    assert session_key(make_mocked_request("GET", path)) == key
