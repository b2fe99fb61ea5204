"""What each status means, how little of an answer is repeated, and words for no answer."""

import contextlib
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import aiohttp
import pytest

from bridge.plugins import Gone, Rejected, Unavailable
from sinks.webhook.errors import Response, judge, pause, unanswered


def every(kind: type[BaseException]) -> set[type[BaseException]]:
    return {kind}.union(*(every(each) for each in kind.__subclasses__()))


NOW = datetime(2026, 11, 15, 18, 0, 0, tzinfo=UTC)


def judged(status: int, **more):
    return judge(Response(status, **more), NOW)


@pytest.mark.parametrize("status", [200, 201, 202, 203, 204, 206, 226, 299])
def test_2xx_is_delivered(status):
    assert judged(status, body=b"whatever").result is None


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308, 399])
def test_3xx_is_rejected_and_names_the_new_host_alone(status):
    found = judged(status, location="https://ann:pw@new.example:8443/path?token=s3cret")
    assert type(found.result) is Rejected
    assert str(found.result) == (
        f"it answered {status} and points to new.example; "
        "the sink follows no redirects, so correct url"
    )
    assert not found.halts


@pytest.mark.parametrize("location", [None, "", "/elsewhere", "https://[::1", "//b c/x", "x"])
def test_a_location_that_names_no_host_is_not_repeated(location):
    said = str(judged(301, location=location).result)
    assert said == "it answered 301; the sink follows no redirects, so correct url"


@pytest.mark.parametrize(
    "status", [400, 402, 404, 405, 406, 409, 411, 413, 414, 415, 422, 451, 499]
)
def test_other_4xx_are_rejected_with_its_words(status):
    found = judged(status, body=b"\n  no such\tthing \r\n<stack trace>")
    assert type(found.result) is Rejected
    assert str(found.result) == f"it answered {status} (no such thing)"
    assert not found.halts


@pytest.mark.parametrize("status", [100, 408, 500, 501, 502, 503, 504, 599, 600, 999])
def test_408_5xx_and_unknown_statuses_are_unavailable(status):
    found = judged(status)
    assert type(found.result) is Unavailable
    assert found.result.retry_after is None
    assert not found.halts


def test_410_stops_the_sink():
    found = judged(410, body=b"retired")
    assert type(found.result) is Gone
    assert str(found.result) == "it answered 410 (retired): it accepts no more CloudEvents"
    assert found.halts


@pytest.mark.parametrize("status", [401, 403, 407])
def test_refused_credentials_wait_for_an_operator(status):
    found = judged(status, body=b"expired")
    assert type(found.result) is Unavailable
    assert "does not accept our credentials" in str(found.result)
    assert found.halts


def test_429_and_503_with_retry_after_pause_the_endpoint():
    for found in (judged(429, retry_after="7"), judged(503, retry_after="7")):
        assert type(found.result) is Unavailable
        assert found.result.retry_after == 7.0
        assert found.halts
    assert judged(429).result.retry_after is None
    assert judged(429).halts
    assert not judged(503).halts
    assert not judged(500, retry_after="7").halts


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 120 ", 120),
        ("9999999999", 3600),
        ("99999999999999999999", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        (None, None),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90),
        (format_datetime(NOW - timedelta(days=1), usegmt=True), 0),
        (format_datetime(NOW + timedelta(days=300), usegmt=True), 3600),
        ("Sun, 15 Nov 2026 18:00:30", 30),
        ("Sun Nov 15 18:00:30 2026", 30),
        ("Sunday, 15-Nov-26 18:00:30 GMT", 30),
        ("Sun, 45 Nov 2026 18:00:30 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(asked, seconds):
    assert pause(Response(429, retry_after=asked), NOW) == seconds


def test_a_date_is_read_by_the_clock_of_the_receiver():
    ahead = NOW + timedelta(hours=2)
    answer = Response(
        429,
        retry_after=format_datetime(ahead + timedelta(seconds=20), usegmt=True),
        date=format_datetime(ahead, usegmt=True),
    )
    assert pause(answer, NOW) == 20.0


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "it answered 400"),
        (b" \r\n \x00 ", "it answered 400"),
        (b"\x1b[31mred\x07\x00 alert", "it answered 400 ([31mred alert)"),
        ("a\u2028b".encode(), "it answered 400 (a)"),
        ("right \u202eto left".encode(), "it answered 400 (right to left)"),
        (b"\xff\xfe", "it answered 400 (��)"),
        (b"x" * 70_000, f"it answered 400 ({'x' * 200}…)"),
    ],
)
def test_its_words_are_one_bounded_printable_line(body, said):
    assert str(judged(400, body=body).result) == said


def test_its_words_repeat_no_secret_of_ours():
    body = b'{"error": "bad token t0p-s3cret-long in /hook?k=t0p-s3cret"}'
    hidden = ["t0p-s3cret", "t0p-s3cret-long", "/hook?k=t0p-s3cret"]
    said = str(judge(Response(400, body), NOW, hidden).result)
    assert said == 'it answered 400 ({"error": "bad token *** in ***"})'


@pytest.mark.parametrize("kind", sorted(every(aiohttp.ClientError), key=str), ids=str)
def test_whatever_aiohttp_raises_has_words(kind):
    error = kind.__new__(kind)
    for name in ("os_error", "certificate_error", "_os_error", "_certificate_error"):
        with contextlib.suppress(AttributeError):
            setattr(error, name, OSError(5, "Input/output error"))
    with contextlib.suppress(AttributeError):
        error.status = 502
    said = str(unanswered(error, "https://a.example"))
    assert said.startswith("https://a.example: ")
    assert len(said) > len("https://a.example: ")
