import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.model import Instance
from bridge.metadata.answers import (
    REASONS,
    Accepted,
    Answer,
    Reply,
    SourceProblem,
    parse_date,
    parse_retry_after,
    problem,
    read_accepted,
    read_document,
    read_instance,
    received,
    sentence,
)

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
METADATA = Path(__file__).parents[3] / "bridge" / "metadata"
LATER = "Sun, 15 Nov 2026 12:00:04 GMT"


def document(body: bytes, status: int = 200) -> Answer | SourceProblem:
    return read_document(received(status, body), "2020-07-01")


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "bad-request"),
        (401, "forbidden"),
        (403, "forbidden"),
        (404, "not-found"),
        (405, "method-not-allowed"),
        (410, "updating"),
        (429, "throttled"),
        (500, "server-error"),
        (502, "server-error"),
        (503, "server-error"),
        (504, "server-error"),
        (301, "redirected"),
        (302, "redirected"),
        (307, "redirected"),
        (308, "redirected"),
        (204, "unexpected-status"),
        (206, "unexpected-status"),
        (418, "unexpected-status"),
        (999, "unexpected-status"),
    ],
)
def test_each_status_has_its_reason(status, reason):
    for answer in (
        document(b'{"DocumentIncarnation": 1, "Events": []}', status),
        read_instance(received(status, b'{"compute": {}}')),
        read_accepted(received(status, b"")),
    ):
        assert isinstance(answer, SourceProblem)
        assert (answer.reason, answer.status) == (reason, status)
        assert str(status) in answer.detail


@pytest.mark.parametrize(
    ("status", "posted", "configuration"),
    [
        (400, False, True),
        (400, True, False),
        (405, False, True),
        (405, True, True),
        (403, False, False),
        (404, False, False),
        (410, False, False),
        (429, False, False),
        (500, False, False),
    ],
)
def test_only_a_wrong_version_header_or_verb_is_a_mistake_of_configuration(
    status, posted, configuration
):
    assert problem(received(status, b""), posted=posted).configuration is configuration


def test_a_refused_approval_says_that_the_scheduled_event_may_be_gone():
    assert "gone" in problem(received(400, b""), posted=True).detail
    assert "api_version" in problem(received(400, b"")).detail


def test_a_refusal_names_the_metadata_security_protocol_and_what_to_do():
    detail = problem(received(403, b"")).detail
    assert "Metadata Security Protocol" in detail
    assert "access control profile" in detail
    assert "/metadata/scheduledevents" in detail
    assert detail.endswith(".")


def test_the_message_and_versions_of_an_error_body_are_reported():
    body = b'{"error": "Bad request. api-version is invalid", "newest-versions": ["2025-04-07"]}'
    detail = problem(received(400, body)).detail
    assert "api-version is invalid" in detail
    assert "2025-04-07" in detail


def test_an_error_body_with_a_message_inside_is_understood_too():
    assert (
        "in total; it says: calm down."
        in problem(received(429, b'{"error": {"message": "calm down"}}')).detail
    )


@pytest.mark.parametrize(
    "body", [b"<html>no</html>", b"\xff", b"[" * 100_000, b"[]", b'{"error": 5}', b"{}"]
)
def test_any_other_error_body_is_left_out(body):
    assert "it says" not in problem(received(500, body)).detail


def test_an_error_page_cannot_forge_lines_in_the_log():
    body = '{"error": "one\\n2026-01-01 granted\\u2028two\\u001b[31m' + "x" * 5000 + '"}'
    detail = problem(received(500, body.encode())).detail
    assert detail.isprintable()
    assert len(detail) <= 400


def test_an_unchanged_answer_has_no_document_and_is_not_empty():
    assert document(b"", 304) == Answer(None, empty=False, status=304)


def test_zero_bytes_are_empty_and_blanks_are_not_json():
    assert document(b"") == Answer(None, empty=True)
    blank = document(b" \n")
    assert isinstance(blank, SourceProblem)
    assert blank.reason == "not-json"


def test_an_incomplete_body_is_not_an_empty_one():
    broken = SourceProblem("truncated", "It broke off.")
    answer = read_document(received(200, b"", broken=broken), "2020-07-01")
    assert answer == broken


def test_every_answer_has_its_date():
    moment = datetime(2026, 11, 15, 12, 0, 4, tzinfo=UTC)
    broken = SourceProblem("truncated", "It broke off.")
    for reply in (
        received(200, b'{"Events": []}', date=LATER),
        received(200, b"", date=LATER),
        received(304, b"", date=LATER),
        received(500, b"", date=LATER),
        received(200, b"no", date=LATER),
        received(200, b"{}", date=LATER),
        received(200, b"", date=LATER, broken=broken),
    ):
        assert read_document(reply, "2020-07-01").date == moment
    assert read_accepted(received(200, b"", date=LATER)) == Accepted(moment)


@pytest.mark.parametrize("text", [None, "", "soon", "Sun, 99 Nov 2026 12:00:04 GMT", "\x00"])
def test_an_invalid_date_is_no_date(text):
    assert parse_date(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("3", 3.0),
        (" 7 ", 7.0),
        ("3600", 10.0),
        ("9" * 6000, 10.0),
        (LATER, 4.0),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 0.0),
        ("Mon, 16 Nov 2026 11:00:00 GMT", 10.0),
        (None, None),
        ("", None),
        ("-3", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("\u0663", None),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_at_most_ten(text, seconds):
    assert parse_retry_after(text, NOON) == seconds


def test_retry_after_as_a_date_is_measured_by_the_clock_of_the_service():
    skewed = received(
        429,
        b"",
        date="Sun, 15 Nov 2020 12:00:00 GMT",
        retry_after="Sun, 15 Nov 2020 12:00:02 GMT",
    )
    assert problem(skewed).retry_after == 2.0


def test_a_time_beyond_the_calendar_is_a_problem_and_not_an_exception():
    names = ("EventId", "EventType", "EventStatus")
    event = {**dict.fromkeys(names, "x"), "NotBefore": "9999-12-31T23:59:59-10:00"}
    answer = document(json.dumps({"Events": [event]}).encode())
    assert isinstance(answer, SourceProblem)
    assert answer.reason == "wrong-shape"


def test_an_instance_is_read_and_an_odd_one_is_a_problem():
    good = read_instance(received(200, b'{"compute": {"name": "web_0"}}'))
    assert good == Instance(name="web_0")
    for body in (b"{}", b"[]", b'{"compute": 5}'):
        odd = read_instance(received(200, body))
        assert isinstance(odd, SourceProblem)
        assert odd.reason == "wrong-shape"


def test_the_body_of_an_accepted_post_is_ignored():
    for body in (b"", b"<html>", b"\xff\xfe", b'{"error": "no"}'):
        assert read_accepted(received(200, body)) == Accepted()


def test_an_accepted_post_whose_body_breaks_off_is_accepted():
    broken = SourceProblem("truncated", "It broke off.")
    assert read_accepted(received(200, b"", broken=broken)) == Accepted()


@pytest.mark.fuzz
@given(st.binary(max_size=200), st.integers(100, 999))
def test_any_bytes_under_any_status_give_a_value(body, status):
    for answer in (
        document(body, status),
        read_instance(received(status, body)),
        read_accepted(received(status, body)),
    ):
        assert isinstance(answer, Answer | SourceProblem | Instance | Accepted)


@pytest.mark.fuzz
@given(st.text())
def test_any_header_gives_a_value(text):
    reply = received(429, b"", date=text, retry_after=text)
    assert reply.retry_after is None or 0 <= reply.retry_after <= 10


@given(st.text(st.characters(exclude_categories=())))
def test_a_sentence_is_one_short_line_that_can_be_written(text):
    line = sentence(text)
    assert len(line) <= 400
    assert len(line.splitlines()) == 1
    assert line.encode()


def test_a_404_speaks_of_what_was_asked_for():
    document = read_document(received(404, b""), "2020-07-01")
    instance = read_instance(received(404, b""))
    assert isinstance(document, SourceProblem)
    assert isinstance(instance, SourceProblem)
    assert "scheduled events" in document.detail
    assert "scheduled events" not in instance.detail
    assert "no instance metadata at this address" in instance.detail


def test_a_refused_instance_request_does_not_blame_the_version_of_scheduled_events():
    instance = read_instance(received(400, b""))
    assert isinstance(instance, SourceProblem)
    assert "source.api_version" not in instance.detail


@given(st.integers(300, 599))
def test_every_status_has_a_listed_reason(status):
    """Metrics have a series for each from the start."""
    assert problem(Reply(status)).reason in REASONS


def test_every_reason_in_the_code_is_listed():
    code = [path.read_text(encoding="utf-8") for path in METADATA.glob("*.py")]
    patterns = (r'_unusable\(reply, "([a-z-]+)"', r'reason, what = "([a-z-]+)"')
    written = {word for text in code for each in patterns for word in re.findall(each, text)}
    assert {"wrong-shape", "timeout"} <= written <= set(REASONS)
