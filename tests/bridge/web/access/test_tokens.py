import pytest

from bridge.common.fields import Secret
from bridge.config import Listen, TokenSettings
from bridge.config.values import PublicUrl
from bridge.web.access.tokens import VOTES, bearer, host_is_ours, needed, origin_is_ours, who

LOOPBACK = Listen("127.0.0.1", 17245)


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


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", VOTES, "read"),
        ("HEAD", "/", "read"),
        ("POST", VOTES, "approve"),
        ("DELETE", VOTES, "operate"),
        ("POST", f"{VOTES}/", "operate"),
        ("POST", "/api/v1/drills", "operate"),
        ("PUT", "/nowhere", "operate"),
        ("BREW", VOTES, "operate"),
    ],
)
def test_reading_and_voting_have_scopes_and_everything_else_is_operating(method, path, scope):
    assert needed(method, path) == scope


def test_an_empty_secret_file_admits_nobody(tmp_path):
    (tmp_path / "token").write_text("\n")
    token = TokenSettings(name="ops", token=Secret(path=tmp_path / "token"))
    assert who("", [token]) == (None, [])


def test_a_secret_file_that_is_missing_never_matches_and_is_named(tmp_path):
    gone = TokenSettings(name="gone", token=Secret(path=tmp_path / "gone"))
    good = TokenSettings(name="good", token=Secret("right"))
    caller, unreadable = who("right", [gone, good])
    assert caller is not None
    assert caller.name == "good"
    assert [name for name, _ in unreadable] == ["gone"]


def test_a_secret_file_is_read_again(tmp_path):
    file = tmp_path / "token"
    file.write_text("first")
    token = TokenSettings(name="ops", token=Secret(path=file))
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


PUBLIC = (PublicUrl.parse("https://bridge.example/seb"), PublicUrl.parse("https://b.example:8443"))


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("bridge.example", True),
        ("bridge.example:443", True),
        ("B.Example:8443", True),
        ("127.0.0.1:17245", True),
        ("evil.example", False),
        ("bridge.example.evil.example", False),
    ],
)
def test_a_proxy_may_send_the_name_that_it_is_reached_by(host, ours):
    assert host_is_ours([host], LOOPBACK, PUBLIC) is ours


@pytest.mark.parametrize(
    ("host", "ours"), [("10.0.0.4", True), ("b.example", True), ("other.example", False)]
)
def test_with_a_public_url_other_names_are_foreign_beyond_loopback_too(host, ours):
    assert host_is_ours([host], Listen("0.0.0.0", 1), PUBLIC) is ours


@pytest.mark.parametrize(
    ("origin", "host", "ours"),
    [
        ("https://bridge.example", "bridge.example", True),
        ("https://bridge.example", "127.0.0.1:17245", True),
        ("https://b.example:8443", "b.example", True),
        ("http://127.0.0.1:17245", "127.0.0.1:17245", True),
        ("http://bridge.example", "bridge.example", False),
        ("https://b.example", "b.example", False),
        ("https://evil.example", "bridge.example", False),
        ("null", "bridge.example", False),
    ],
)
def test_a_page_behind_a_proxy_must_have_the_public_origin(origin, host, ours):
    assert origin_is_ours(origin, "http", [host], PUBLIC) is ours
