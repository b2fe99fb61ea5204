import asyncio
import logging
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.otlp_receiver import plain, receiver
from support.ports import free_ports
from support.until import until

from bridge.common.fields import Secret
from bridge.telemetry.context import new_trace
from bridge.telemetry.exporter import AT_ONCE, Exporter
from bridge.telemetry.tracing import MOST, Span, Tracing


def span(**changes: Any) -> Span:
    usual = Span("poll", "client", new_trace(), None, 1.5, 2.25, {"seb.sink": "bus", "seb.n": 3})
    return usual._replace(**changes)


def exporter(tracing: Tracing, url: str) -> Exporter:
    resource = {"service.name": "scheduled-events-bridge"}
    made = Exporter(tracing, f"{url}/v1/traces", {"X-Key": Secret("s3cret")}, lambda: resource)
    made.together = 0.0
    return made


@asynccontextmanager
async def running(made: Exporter):
    task = asyncio.create_task(made.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_receiver_gets_every_field_of_a_span():
    tracing, parent, link = Tracing(on=True), new_trace(), new_trace()
    sent = span(parent=parent, context=parent.child(), links=(link,), error="no route")
    async with receiver() as at, running(exporter(tracing, at.url)):
        tracing.add(sent)
        await until(lambda: at.spans, "the span")
    [got] = at.spans
    assert (got.name, got.kind) == ("poll", 3)
    assert (got.trace_id.hex(), got.span_id.hex()) == sent.context[:2]
    assert got.parent_span_id.hex() == parent.span_id
    assert (got.start_time_unix_nano, got.end_time_unix_nano) == (1_500_000_000, 2_250_000_000)
    assert plain(got.attributes) == {"seb.sink": "bus", "seb.n": 3}
    assert (got.links[0].trace_id.hex(), got.links[0].span_id.hex()) == link[:2]
    assert (got.status.code, got.status.message) == (2, "no route")
    assert at.resource == {"service.name": "scheduled-events-bridge"}
    assert at.requests[0][0]["X-Key"] == "s3cret"
    assert (tracing.exported, tracing.dropped) == (1, 0)


async def test_many_spans_go_in_few_requests():
    tracing = Tracing(on=True)
    for _ in range(AT_ONCE + 1):
        tracing.add(span())
    async with receiver() as at, running(exporter(tracing, at.url)):
        await until(lambda: tracing.exported == AT_ONCE + 1, "all of them")
    assert len(at.requests) == 2


async def test_a_receiver_that_is_away_gets_them_later(caplog):
    caplog.set_level(logging.INFO)
    tracing = Tracing(on=True)
    async with receiver() as at, running(exporter(tracing, at.url)):
        at.status = 503
        tracing.add(span())
        await until(lambda: "telemetry.unavailable" in caplog.messages, "a failure")
        at.status = 200
        await until(lambda: at.spans, "the span")
        await until(lambda: "telemetry.recovered" in caplog.messages, "the end of it")
    assert caplog.messages.count("telemetry.unavailable") == 1
    assert tracing.dropped == 0


async def test_a_dead_receiver_costs_a_full_queue_and_no_more():
    tracing = Tracing(on=True)
    [port] = free_ports(1)
    async with running(exporter(tracing, f"http://127.0.0.1:{port}")) as task:
        for _ in range(MOST * 2):
            tracing.add(span())
        await asyncio.sleep(0)
        assert (len(tracing.waiting), tracing.dropped) == (MOST, MOST)
        assert not task.done()


@pytest.mark.parametrize(("status", "refuses", "lost"), [(400, 0, 2), (301, 0, 2), (200, 1, 1)])
async def test_what_a_receiver_refuses_is_counted_and_not_sent_again(caplog, status, refuses, lost):
    tracing = Tracing(on=True)
    async with receiver() as at, running(exporter(tracing, at.url)):
        at.status, at.refuses = status, refuses
        tracing.add(span())
        tracing.add(span())
        await until(lambda: tracing.dropped, "the loss")
    assert (tracing.dropped, tracing.exported, len(tracing.waiting)) == (lost, 2 - lost, 0)
    [line] = [record for record in caplog.records if record.message == "telemetry.refused"]
    assert line.__dict__["spans"] == lost


async def test_at_the_end_what_waits_is_sent_within_a_limit():
    tracing = Tracing(on=True)
    tracing.add(span())
    async with receiver() as at:
        await exporter(tracing, at.url).flush(10)
    assert len(at.spans) == 1
    assert not tracing.waiting


async def test_at_the_end_a_receiver_that_hangs_is_left():
    tracing = Tracing(on=True)
    tracing.add(span())
    async with receiver() as at:
        at.answers.clear()
        await exporter(tracing, at.url).flush(0.05)
        assert len(tracing.waiting) == 1
