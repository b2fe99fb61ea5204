import os
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from bridge.common.fields import (
    LARGEST_SECRET,
    Duration,
    Secret,
    Settings,
    Size,
    parse_duration,
    parse_size,
    write_duration,
)


class Example(Settings):
    wait: Duration = 5.0
    room: Size = 1024
    token: Secret | None = None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("1s", 1),
        ("1.5s", 1.5),
        ("5m", 300),
        ("24h", 86400),
        ("7d", 604800),
        (" 5s ", 5),
        ("0s", 0),
        (0, 0),
    ],
)
def test_durations_are_read(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "value", ["5", "", "s", "5 s", "-5s", "1e3s", "5w", "1m30s", 7, 5.0, True, False, None, []]
)
def test_an_invalid_duration_is_refused_with_examples(value):
    with pytest.raises(ValueError, match="write it like 500ms, 1s, 5m, 24h or 7d"):
        parse_duration(value)


@pytest.mark.parametrize("value", ["36501d", "99999999d", f"{'9' * 400}s"])
def test_a_duration_that_no_calendar_has_is_refused(value):
    with pytest.raises(ValueError, match="at most 36500d"):
        parse_duration(value)
    assert datetime.now(UTC) + timedelta(seconds=parse_duration("36500d"))


@given(st.integers(min_value=0, max_value=10**12).map(lambda milliseconds: milliseconds / 1000))
def test_a_written_duration_reads_back(seconds):
    assert parse_duration(write_duration(seconds)) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("seconds", "text"), [(604800, "7d"), (5400, "90m"), (90, "90s"), (0.25, "250ms")]
)
def test_a_duration_is_written_in_its_largest_whole_unit(seconds, text):
    assert write_duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "size"),
    [("0B", 0), ("64KiB", 65536), ("1 MiB", 1048576), ("2GiB", 2147483648), ("5kB", 5000)],
)
def test_sizes_are_read(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize("value", ["64", "64K", "64kib", "1.5MiB", "-1B", "", 65, True, None])
def test_an_invalid_size_is_refused_with_examples(value):
    with pytest.raises(ValueError, match="write it like 64KiB, 256MiB or 1GiB"):
        parse_size(value)


def test_settings_refuse_unknown_keys_and_do_not_change():
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Example.model_validate({"wiat": "5s"})
    with pytest.raises(ValidationError, match="frozen"):
        Example().wait = 1.0  # type: ignore[misc]  # that is what is tried


def test_the_json_schema_takes_what_the_parser_takes():
    schema = Example.model_json_schema()["properties"]
    assert schema["wait"]["type"] == "string"
    assert schema["room"]["examples"] == ["256MiB"]


def test_a_secret_is_never_shown():
    example = Example.model_validate({"token": "hunter2"})
    assert example.token is not None
    assert example.token.get() == "hunter2"
    shown = f"{example} {example!r} {example.token} {example.model_dump_json()}"
    assert "hunter2" not in shown


@pytest.mark.parametrize("value", [{"hunter2": "file"}, ["hunter2"], {"file": 2, "x": "hunter2"}])
def test_our_error_about_an_invalid_secret_does_not_show_it(value):
    with pytest.raises(ValueError, match="a secret must be text") as caught:
        Secret.parse(value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("value", ["", None, 5, {}, {"file": 1}, {"file": "a", "more": "b"}])
def test_an_invalid_secret_is_refused(value):
    with pytest.raises(ValueError, match=r"or {file: PATH}"):
        Secret.parse(value)


def test_a_secret_in_a_file_is_read_again_when_the_file_changes(tmp_path):
    path = tmp_path / "token"
    path.write_text("first\n")
    secret = Secret.parse({"file": str(path)})
    assert secret.get() == "first"
    path.write_text("second\n")
    os.utime(path, ns=(1, 1))
    assert secret.get() == "second"
    assert repr(secret) == f"Secret(file={str(path)!r})"


def test_a_missing_secret_file_is_reported(tmp_path):
    with pytest.raises(FileNotFoundError):
        Secret.parse({"file": str(tmp_path / "token")}).get()


def test_secrets_with_the_same_value_are_equal(tmp_path):
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    one, same = Secret(path=tmp_path / "a"), Secret(path=tmp_path / "a")
    (tmp_path / "a").write_text("x")
    one.get()
    assert one == same
    assert len({one, same, Secret("a"), Secret("a")}) == 2
    assert Secret.parse(one) is one


def test_the_json_schema_of_a_secret_allows_both_forms():
    text, file = TypeAdapter(Secret).json_schema()["anyOf"]
    assert text == {"type": "string", "minLength": 1}
    assert file["required"] == ["file"]


def test_a_file_that_is_too_large_for_a_secret_is_not_read_whole(tmp_path):
    file = tmp_path / "secret"
    file.write_text("x" * LARGEST_SECRET)
    secret = Secret(path=file)
    assert secret.get() == "x" * LARGEST_SECRET
    file.write_text("x" * (LARGEST_SECRET + 1))
    with pytest.raises(OSError, match="more than 65536 bytes"):
        secret.get()
