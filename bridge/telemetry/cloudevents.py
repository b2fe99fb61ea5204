"""CloudEvents in traces: the attribute `traceparent`, and the spans from a poll to each delivery.

The attribute is written once, before the journal records the CloudEvent, so that all sinks and all
attempts send the same bytes. A delivery finds its trace there, also after a restart.
"""

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any

from bridge.core.cloudevent import CloudEvent
from bridge.core.envelope import with_attribute
from bridge.plugins import Place, Rejected, Result, Send, SinkPlugin, SinkSettings, Unavailable
from bridge.telemetry.context import TRACEPARENT, TraceContext, read_traceparent
from bridge.telemetry.tracing import Span, Tracing, Value, below


def in_trace(cloudevent: CloudEvent, context: TraceContext | None) -> CloudEvent:
    """The CloudEvent with its place in a trace, if it has one."""
    if context is None:
        return cloudevent
    return with_attribute(cloudevent, TRACEPARENT, str(context))


def in_own_trace(cloudevent: CloudEvent, tracing: Tracing) -> CloudEvent:
    """The CloudEvent as the beginning of a trace: nothing that is traced has caused it."""
    if not tracing.on:
        return cloudevent
    context, now = below(None), tracing.clock()
    about = _about(cloudevent)
    tracing.add(Span(f"record {cloudevent.kind}", "producer", context, None, now, now, about))
    return in_trace(cloudevent, context)


@contextmanager
def traced_poll(
    tracing: Tracing, asked: float, cloudevents: Sequence[CloudEvent]
) -> Generator[Sequence[CloudEvent]]:
    """Trace a poll that has news, from the request to the journal; yields what to record."""
    if not tracing.on or not cloudevents:
        yield cloudevents
        return
    answered, poll = tracing.clock(), below(None)
    contexts = [poll.child() for _ in cloudevents]
    yield [in_trace(one, context) for one, context in zip(cloudevents, contexts, strict=True)]
    done = tracing.clock()
    news = {"seb.cloudevents": len(cloudevents)}
    tracing.add(Span("poll", "client", poll, None, asked, answered, news))
    for one, context in zip(cloudevents, contexts, strict=True):
        about = _about(one)
        tracing.add(Span(f"record {one.kind}", "producer", context, poll, answered, done, about))


def traced_sink(plugin: SinkPlugin[Any], name: str, tracing: Tracing) -> SinkPlugin[Any]:
    """The same sink; while tracing is on, each attempt to deliver a CloudEvent is a span."""

    @asynccontextmanager
    async def opened(settings: SinkSettings, place: Place) -> AsyncGenerator[Send]:
        async with plugin.open(settings, place) as send:
            yield _traced_send(send, {"seb.sink": name, "seb.sink.type": settings.type}, tracing)

    return replace(plugin, open=opened)


def _traced_send(send: Send, sink: dict[str, Value], tracing: Tracing) -> Send:
    async def traced(batch: Sequence[CloudEvent]) -> Sequence[Result]:
        if not tracing.on:
            return await send(batch)
        began = tracing.clock()
        results: Sequence[object] = [Unavailable("canceled")] * len(batch)
        try:
            results = found = await send(batch)
        except Exception as error:
            results = [error] * len(batch)
            raise
        finally:
            if isinstance(results, list | tuple):  # the bridge says what is wrong with another
                for one, result in zip(batch, results, strict=False):
                    _delivered(tracing, one, result, began, sink)
        return found

    return traced


def _delivered(
    tracing: Tracing, one: CloudEvent, result: object, began: float, sink: dict[str, Value]
) -> None:
    parent = _parent(one)
    failed = isinstance(result, Exception)
    how = "delivered" if not failed else "rejected" if isinstance(result, Rejected) else "failed"
    about = {**_about(one), **sink, "seb.result": how}
    error = (str(result) or type(result).__name__)[:200] if failed else None
    name = f"deliver {sink['seb.sink']}"
    end = tracing.clock()
    tracing.add(Span(name, "producer", below(parent), parent, began, end, about, error))


def _parent(one: CloudEvent) -> TraceContext | None:
    """Where it was recorded; what is damaged in the journal has no place in a trace."""
    try:
        return read_traceparent(one.attributes.get(TRACEPARENT))
    except (ValueError, TypeError, AttributeError, KeyError):
        return None


def _about(one: CloudEvent) -> dict[str, Value]:
    return {
        "cloudevents.event_id": one.id,
        "cloudevents.event_type": one.type,
        "cloudevents.event_subject": one.key,
    }
