"""A batch to the collector: requests, refusals, and receipts until it is indexed."""

import asyncio
from uuid import UUID

import pytest
from aiohttp import web
from support.cloudevents import LARGEST, batch, make
from support.results import pause_of
from support.splunk_sending import PLACE, configured, deliver
from support.splunk_server import TOKEN

from bridge.plugins import Rejected, Unavailable
from sinks.splunk import delivery, sink


async def test_a_batch_is_one_request_of_objects_without_anything_between(server):
    assert await deliver(server, batch(3)) == [None] * 3
    [(path, headers, body)] = server.requests
    assert path == "/services/collector/event"
    assert headers["Authorization"] == f"Splunk {TOKEN}"
    assert UUID(headers["X-Splunk-Request-Channel"])
    assert body.count(b"}{") == 2


@pytest.fixture
def small_requests(monkeypatch):
    monkeypatch.setattr(delivery, "LARGEST_REQUEST", 140 * 1024)


@pytest.mark.usefixtures("small_requests")
async def test_a_large_batch_goes_in_several_requests(server):
    sent = batch(6, size=LARGEST)
    assert await deliver(server, sent) == [None] * 6
    assert [len(body) <= 140 * 1024 for _, _, body in server.requests] == [True] * 3
    assert server.ids == [cloudevent.id for cloudevent in sent]


@pytest.mark.parametrize("numbers", [True, False], ids=["numbered", "not numbered"])
@pytest.mark.parametrize("bad", [{0}, {4}, {1, 2}, {0, 1, 2, 3, 4}])
async def test_bad_events_are_rejected_and_the_others_are_sent_again(server, numbers, bad):
    sent = batch(5)
    server.numbers, server.refused = numbers, {sent[number].id for number in bad}
    results = await deliver(server, sent)
    assert {n for n, result in enumerate(results) if isinstance(result, Rejected)} == bad
    assert {n for n, result in enumerate(results) if result is None} == set(range(5)) - bad
    assert sorted(server.ids) == sorted(e.id for n, e in enumerate(sent) if n not in bad)


async def test_what_is_too_large_together_goes_alone_and_alone_is_rejected(server):
    server.largest = 8 * 1024
    results = await deliver(server, [*batch(8), make(9, size=LARGEST)])
    assert results[:8] == [None] * 8
    assert isinstance(results[8], Rejected)
    assert "too large (413)" in str(results[8])


@pytest.mark.usefixtures("small_requests")
async def test_a_busy_collector_is_not_asked_again_in_the_same_batch(server):
    server.busy, server.more = 9, {"Retry-After": "42"}
    results = await deliver(server, batch(4, size=LARGEST))
    assert [pause_of(result) for result in results] == [42] * 4
    assert len(server.requests) == 1


async def test_a_bad_index_rejects_no_event(server):
    server.tokens[TOKEN].indexes = {"main"}
    [result] = await deliver(server, batch(1), index="maim")
    assert isinstance(result, Unavailable)
    assert "correct index" in str(result)


async def test_a_portal_that_says_200_to_everything_has_taken_nothing(server):
    server.canned = web.Response(text="<html>Welcome! Please log in</html>")
    [result] = await deliver(server, batch(1))
    assert "the server is not an HTTP Event Collector (200)" in str(result)


@pytest.mark.usefixtures("small_requests")
async def test_a_collector_that_takes_part_and_falls_silent_has_taken_that_part(server):
    sent = batch(4, size=LARGEST)
    keys = {"retry": {"timeout": "1s"}}
    async with sink.open(configured(server.url, **keys), PLACE) as send:
        task = asyncio.ensure_future(send(sent))
        while not server.events:
            await asyncio.sleep(0)
        server.stall()
        results = await task
    assert results[:2] == [None, None]
    assert [str(result) for result in results[2:]] == ["no answer within 0.9 s"] * 2


ACKNOWLEDGE = {"acknowledge": True, "retry": {"timeout": "300ms"}}


async def test_accepted_is_not_delivered_until_it_is_indexed(slow):
    async with sink.open(configured(slow.url, acknowledge=True), PLACE) as send:
        task = asyncio.ensure_future(send(batch(3)))
        while len(slow.asked("/ack")) < 3:
            await asyncio.sleep(0.01)
        assert not task.done()
        slow.index()
        assert list(await task) == [None] * 3
    assert len(slow.asked("/event")) == 1


async def quiet(server):
    """Until no request is on its way: a receipt whose answer nobody reads is forgotten too."""
    asked = None
    while asked != (asked := len(server.asked("/ack"))):
        await asyncio.sleep(0.05)


async def test_what_is_indexed_after_the_attempt_is_asked_for_and_not_sent_again(slow):
    async with sink.open(configured(slow.url, **ACKNOWLEDGE), PLACE) as send:
        results = await send(batch(2))
        assert [str(result) for result in results] == ["accepted, but not indexed yet"] * 2
        await quiet(slow)
        slow.index()
        assert list(await send(batch(2))) == [None] * 2
    assert slow.ids == [cloudevent.id for cloudevent in batch(2)]


async def test_what_is_never_indexed_is_sent_again_in_the_end(slow, monkeypatch):
    async with sink.open(configured(slow.url, **ACKNOWLEDGE), PLACE) as send:
        await send(batch(1))
        monkeypatch.setattr(delivery, "PATIENCE", 0.0)
        slow.indexed = True
        assert list(await send(batch(1))) == [None]
    assert len(slow.ids) == 2


async def test_a_token_that_does_not_acknowledge_is_found_out_before_anything_is_sent(server):
    [result] = await deliver(server, batch(1), acknowledge=True)
    assert str(result).startswith("the token does not acknowledge; enable that")
    assert server.events == []


async def test_receipts_that_cannot_be_asked_for_leave_it_open(slow):
    async with sink.open(configured(slow.url, acknowledge=True), PLACE) as send:
        task = asyncio.ensure_future(send(batch(1)))
        while not slow.events:
            await asyncio.sleep(0)
        slow.busy = 9
        [result] = await task
        assert "it cannot accept it now (503: Server is busy)" in str(result)
        slow.busy = None
        slow.index()
        assert list(await send(batch(1))) == [None]
    assert len(slow.events) == 1
