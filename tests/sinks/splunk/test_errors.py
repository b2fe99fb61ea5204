"""What the Splunk sink makes of each of the collector's answers."""

import pytest
from support.splunk_server import TEXTS, TOKEN

from bridge.plugins import Unavailable
from sinks.splunk.errors import Accepted, CollectorResponse, Refused, judge


@pytest.mark.parametrize("code", [1, 2, 3, 4, 7, 10, 11, 14])
def test_what_an_operator_has_to_fix_is_retried_rarely(code):
    status, text = TEXTS[code]
    verdict = judge(
        CollectorResponse(status, {"text": text, "code": code, "invalid-event-number": 0})
    )
    assert isinstance(verdict, Unavailable)
    assert verdict.retry_after == 60
    assert f"({status}: {text})" in str(verdict)


@pytest.mark.parametrize("code", [5, 6, 12, 13, 15])
def test_an_error_of_one_event_concerns_only_that_event(code):
    said = {"text": TEXTS[code][1], "code": code, "invalid-event-number": 3}
    verdict = judge(CollectorResponse(400, said))
    assert isinstance(verdict, Refused)
    assert verdict.number == 3


@pytest.mark.parametrize(
    ("status", "said", "retry_after", "wait", "words"),
    [
        (503, {"code": 9, "text": "Server is busy"}, None, None, "now (503: Server is busy)"),
        (503, {"code": 9}, "17", 17, "it cannot accept it now (503)"),
        (429, {}, " 5 ", 5, "it cannot accept it now (429)"),
        (503, {}, "Wed, 21 Oct 2015 07:28:00 GMT", None, "it cannot accept it now"),
        (500, {"code": 8}, None, None, "it cannot accept it now (500)"),
        (404, {}, None, 60, "this is not an HTTP Event Collector; correct url (404)"),
        (403, {}, None, 60, "it does not accept the token (403)"),
        (407, {}, None, 60, "the proxy requires authentication"),
        (302, {}, None, 60, "the server is not an HTTP Event Collector (302)"),
        (200, {}, None, 60, "the server is not an HTTP Event Collector (200)"),
        (200, {"code": 17, "text": "HEC is healthy"}, None, 60, "is not an HTTP Event Collector"),
        (200, {"code": False}, None, 60, "is not an HTTP Event Collector"),
        (418, {"text": "a\nb\x1b[1m " + "x" * 999}, None, None, "(418: a b [1m xxx"),
    ],
)
def test_whatever_else_it_answers_nothing_is_lost(status, said, retry_after, wait, words):
    verdict = judge(CollectorResponse(status, said, retry_after))
    assert isinstance(verdict, Unavailable)
    assert verdict.retry_after == wait
    assert words in str(verdict)
    assert len(str(verdict)) < 300


def test_only_success_is_success():
    assert judge(CollectorResponse(200, {"code": 0})) == Accepted(None)
    assert judge(CollectorResponse(200, {"code": 0, "ackId": 7})) == Accepted(7)


def test_an_answer_that_repeats_the_token_does_not_betray_it():
    verdict = judge(CollectorResponse(403, {"code": 4, "text": f"unknown {TOKEN}"}), TOKEN)
    assert TOKEN not in str(verdict)
