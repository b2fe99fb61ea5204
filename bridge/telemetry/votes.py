"""Votes in traces: from the sender's own span to the journal, and on to the request to Azure."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    nullcontext,
    suppress,
)

from bridge.common.strictjson import read_object
from bridge.plugins import Delivery
from bridge.policy.attributes import MessageHeaders
from bridge.policy.message import LARGEST, MalformedApproval, NotForUs, read, unwrap
from bridge.policy.votes import Approval, Vote
from bridge.telemetry.context import TRACEPARENT, TraceContext, read_traceparent
from bridge.telemetry.tracing import Span, Tracing, Value, below

_HEADERS = (f"ce-{TRACEPARENT}", f"ce_{TRACEPARENT}", TRACEPARENT)
"""The CloudEvent's own attribute first: the header is often that of the last hop."""
_OFF: AbstractAsyncContextManager[None] = nullcontext()


def traced_votes(
    tracing: Tracing, deliveries: Sequence[Delivery], via: str
) -> AbstractAsyncContextManager[None]:
    """Trace messages from their arrival to the journal; remember their traces by approval."""
    return _traced(tracing, deliveries, via) if tracing.on else _OFF


@asynccontextmanager
async def _traced(
    tracing: Tracing, deliveries: Sequence[Delivery], via: str
) -> AsyncGenerator[None]:
    began = tracing.clock()
    opened = [_opened(one) for one in deliveries]
    for context, _, said in opened:
        for approval in said:
            tracing.remember_vote(approval.key, context)
            tracing.remember_vote(approval.event_key, context)
    error: str | None = "not recorded"
    try:
        yield
        error = None
    except Exception as problem:
        error = str(problem)[:200]
        raise
    finally:
        for context, parent, said in opened:
            events = tuple(approval.event_key for approval in said)
            about: dict[str, Value] = {"seb.via": via, "seb.event_ids": events}
            end = tracing.clock()
            tracing.add(Span("vote", "consumer", context, parent, began, end, about, error))


def _opened(delivery: Delivery) -> tuple[TraceContext, TraceContext | None, list[Approval]]:
    """The message's place in a trace, its sender's, and what it says; nothing if it is invalid."""
    said: list[Approval] = []
    body, headers = delivery.body, delivery.headers
    with suppress(MalformedApproval, NotForUs):
        body, headers = unwrap(body, headers)
        said = read(body, headers, delivery.position, place=delivery.position)
    parent = sender(body, headers)
    return below(parent), parent, said


def sender(body: bytes, headers: MessageHeaders) -> TraceContext | None:
    """The trace context that a message brings: in a header, or at the top of its JSON."""
    named = {name.lower(): value for name, value in headers}
    for name in _HEADERS:
        if (found := read_traceparent(named.get(name, b"").decode("latin-1"))) is not None:
            return found
    if len(body) > LARGEST or TRACEPARENT.encode() not in body:
        return None
    return read_traceparent(read_object(body).get(TRACEPARENT))


def trace_request(
    tracing: Tracing,
    began: float,
    asked: Mapping[str, Vote | None],
    error: str | None,
) -> None:
    """Trace a StartRequest below the last vote on its first event; the others are linked."""
    if not tracing.on or not asked:
        return
    found = [tracing.vote(vote.key if vote else None, event) for event, vote in asked.items()]
    parents = list(dict.fromkeys(one for one in found if one is not None))
    first = parents[0] if parents else None
    about = {"seb.event_ids": tuple(asked)}
    tracing.add(
        Span(
            "start request",
            "client",
            below(first),
            first,
            began,
            tracing.clock(),
            about,
            error,
            tuple(parents[1:]),
        )
    )
