"""Secrets from files and texts, and which hosts are this machine."""

import pytest

from bridge.plugins import Secret, Unavailable, is_loopback, read_secret


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost"])
def test_loopback_is_this_machine(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["10.0.0.1", "::", "localhost.example", "", "169.254.169.254"])
def test_other_hosts_are_not_loopback(host):
    assert not is_loopback(host)


def test_a_secret_is_read_from_its_text_or_each_time_from_its_file(tmp_path):
    path = tmp_path / "secret"
    assert read_secret(Secret("s3cret"), "password") == "s3cret"
    for value in ("first", "second"):
        path.write_text(f"{value}\n")
        assert read_secret(Secret(path=path), "password") == value


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, r"password cannot be read from .*secret: No such file"),
        (b"\xff", "password is not UTF-8 text in"),
        (b"\n", "password is empty in"),
    ],
)
def test_a_missing_secret_is_unavailable_and_named(tmp_path, content, why):
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Unavailable, match=why):
        read_secret(Secret(path=path), "password")
