import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.plugins import Delivery, Unavailable
from bridge.telemetry.context import new_trace
from bridge.telemetry.tracing import Tracing
from bridge.telemetry.votes import sender, trace_request, traced_votes

EVENT = "602D9444-D2CD-49C7-8624-8643E7171297"
BODY = {"eventId": EVENT, "id": "vote-1"}


def test_the_sender_s_context_is_found_wherever_a_transport_puts_it():
    context, other = new_trace(), new_trace()
    plain = json.dumps(BODY).encode()
    for name in ("traceparent", "Traceparent", "ce-traceparent", "ce_traceparent"):
        assert sender(plain, [(name, str(context).encode())]) == context
    assert sender(json.dumps({**BODY, "traceparent": str(context)}).encode(), []) == context
    both = [("traceparent", str(other).encode()), ("ce_traceparent", str(context).encode())]
    assert sender(plain, both) == context, "the attribute, not that of the last hop"


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"traceparent", []),
        (b'{"traceparent": 7}', []),
        (b'{"traceparent": ["x"]}', []),
        (b"{}", [("traceparent", b"\xff\xfe")]),
        (b'{"traceparent": "' + b"x" * 70_000 + b'"}', []),
    ],
)
def test_what_is_not_a_context_is_ignored(body, headers):
    assert sender(body, headers) is None


@given(body=st.binary(max_size=300), value=st.binary(max_size=100))
def test_no_message_makes_its_trace_fail(body, value):
    async def traced():
        tracing = Tracing(on=True)
        headers = [("traceparent", value), ("content-type", b"application/json")]
        async with traced_votes(tracing, [Delivery(body, headers)], "bus"):
            pass
        assert len(tracing.waiting) == 1

    asyncio.run(traced())


async def test_a_vote_is_traced_from_its_sender_to_the_journal_and_on_to_azure():
    tracing, context = Tracing(on=True), new_trace()
    body = json.dumps({**BODY, "traceparent": str(context)}).encode()
    async with traced_votes(tracing, [Delivery(body)], "http"):
        assert not tracing.waiting
    trace_request(tracing, 1.0, {EVENT: None}, None)
    vote, request = tracing.waiting
    assert (vote.name, vote.parent, vote.error) == ("vote", context, None)
    assert vote.attributes == {"seb.via": "http", "seb.event_ids": (EVENT,)}
    assert (request.name, request.parent) == ("start request", vote.context)
    assert request.context.trace_id == context.trace_id


async def test_several_events_in_one_request_link_their_votes():
    tracing = Tracing(on=True)
    for number in (1, 2, 3):
        async with traced_votes(tracing, [Delivery(json.dumps({"eventId": f"E-{number}"}).encode())], "bus"):  # fmt: skip
            pass
    votes = list(tracing.waiting)
    trace_request(tracing, 1.0, {"E-1": None, "E-2": None, "E-3": None, "E-4": None}, "503")
    request = tracing.waiting[-1]
    assert request.parent == votes[0].context
    assert request.links == (votes[1].context, votes[2].context)
    assert request.error == "503"


async def test_a_message_that_is_not_recorded_is_an_error_and_one_that_is_invalid_is_a_span():
    tracing = Tracing(on=True)
    with pytest.raises(Unavailable):
        async with traced_votes(tracing, [Delivery(json.dumps(BODY).encode())], "bus"):
            raise Unavailable("the disk is full")
    async with traced_votes(tracing, [Delivery(b"\xff not JSON")], "bus"):
        pass
    assert [one.error for one in tracing.waiting] == ["the disk is full", None]


async def test_without_tracing_nothing_is_read():
    tracing = Tracing()
    async with traced_votes(tracing, [Delivery(json.dumps(BODY).encode())], "bus"):
        pass
    trace_request(tracing, 1.0, {EVENT: None}, None)
    assert not tracing.waiting


def test_a_request_that_named_no_event_was_not_sent():
    tracing = Tracing(on=True)
    trace_request(tracing, 1.0, {}, "withdrawn")
    assert not tracing.waiting
