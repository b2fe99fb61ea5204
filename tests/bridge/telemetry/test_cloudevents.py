import asyncio
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from support.world import OBSERVER

from bridge.core import messages
from bridge.core.envelope import LIMIT
from bridge.plugins import Delivered, Place, Rejected, SinkPlugin, SinkSettings, Unavailable
from bridge.telemetry.cloudevents import in_own_trace, in_trace, traced_poll, traced_sink
from bridge.telemetry.context import new_trace, read_traceparent
from bridge.telemetry.tracing import Tracing

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def cloudevent(text: str = "x"):
    return messages.audited("tested", OBSERVER, NOW, actor="me", via="file", address=None, detail={"text": text}, second=NOW)  # fmt: skip


def test_the_attribute_is_added_and_nothing_else_changes():
    before, context = cloudevent(), new_trace()
    after = in_trace(before, context)
    assert after.attributes == {**before.attributes, "traceparent": str(context)}
    assert (after.id, after.type, after.key, after.data) == (before.id, before.type, before.key, before.data)  # fmt: skip
    assert in_trace(before, None) is before


def test_a_cloudevent_without_room_stays_as_it_is():
    large = cloudevent("y" * (LIMIT - len(cloudevent("").body) - 30))
    assert len(large.body) > LIMIT - 75
    assert in_trace(large, new_trace()) is large


def test_what_nothing_traced_has_caused_begins_a_trace():
    tracing = Tracing(on=True)
    made = in_own_trace(cloudevent(), tracing)
    [span] = tracing.waiting
    assert (span.name, span.parent) == ("record bridge.audited", None)
    assert made.attributes["traceparent"] == str(span.context)
    assert in_own_trace(cloudevent(), Tracing()) == cloudevent()


def test_a_poll_without_tracing_or_news_changesnullcontext():
    events = [cloudevent()]
    with traced_poll(Tracing(), 1.0, events) as traced:
        assert traced is events
    tracing = Tracing(on=True)
    with traced_poll(tracing, 1.0, []):
        pass
    assert not tracing.waiting


def test_what_was_not_recorded_has_no_spans():
    tracing = Tracing(on=True)
    with pytest.raises(OSError), traced_poll(tracing, 1.0, [cloudevent()]):
        raise OSError
    assert not tracing.waiting


def sink(results: Any) -> SinkPlugin[SinkSettings]:
    @asynccontextmanager
    async def opened(settings, place):
        async def send(batch):
            if isinstance(results, BaseException):
                raise results
            return results

        yield send

    return SinkPlugin(SinkSettings, opened)


async def attempted(tracing: Tracing, results: Any, count: int = 1):
    plugin = traced_sink(sink(results), "bus", tracing)
    contexts = [new_trace() for _ in range(count)]
    async with plugin.open(SinkSettings(type="test"), Place()) as send:
        with pytest.raises(BaseException) if isinstance(results, BaseException) else nullcontext():
            await send([in_trace(cloudevent(), context) for context in contexts])
    return contexts


async def test_each_attempt_is_below_the_span_that_recorded_the_cloudevent():
    tracing = Tracing(on=True)
    results = [None, Delivered("note"), Rejected("too big"), Unavailable("busy")]
    contexts = await attempted(tracing, results, len(results))
    assert [one.parent for one in tracing.waiting] == contexts
    assert all(
        one.context.trace_id == parent.trace_id
        for one, parent in zip(tracing.waiting, contexts, strict=True)
    )
    how = [one.attributes["seb.result"] for one in tracing.waiting]
    assert how == ["delivered", "delivered", "rejected", "failed"]
    assert [one.error for one in tracing.waiting] == [None, None, "too big", "busy"]
    assert {one.name for one in tracing.waiting} == {"deliver bus"}


@pytest.mark.parametrize(
    ("error", "said"),
    [(OSError("no route"), "no route"), (asyncio.CancelledError(), "canceled")],
)
async def test_a_failure_of_the_whole_batch_is_seen_and_goes_on(error, said):
    tracing = Tracing(on=True)
    await attempted(tracing, error)
    assert [one.error for one in tracing.waiting] == [said]


@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b"7", b'{"data": 1}', b"{"])
async def test_a_damaged_cloudevent_fails_for_no_trace(body):
    tracing = Tracing(on=True)
    plugin = traced_sink(sink([None]), "bus", tracing)
    async with plugin.open(SinkSettings(type="test"), Place()) as send:
        assert await send([replace(cloudevent(), body=body)]) == [None]
    assert [one.parent for one in tracing.waiting] == [None]


async def test_what_a_sink_must_not_return_is_passed_on():
    tracing = Tracing(on=True)
    plugin = traced_sink(sink(7), "bus", tracing)
    async with plugin.open(SinkSettings(type="test"), Place()) as send:
        assert await send([cloudevent()]) == 7
    assert not tracing.waiting


async def test_a_sink_without_tracing_is_not_slowed_down():
    tracing = Tracing()
    await attempted(tracing, [None])
    assert not tracing.waiting


def test_the_attribute_is_a_valid_context():
    context = new_trace()
    assert read_traceparent(in_trace(cloudevent(), context).attributes["traceparent"]) == context
