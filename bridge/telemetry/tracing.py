"""Spans, and the short queue in which they wait for the exporter."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from bridge.telemetry.context import TraceContext, new_trace

MOST = 2048
"""How many spans may wait; more are dropped and counted."""
MOST_VOTES = 1024
"""Of how many votes the trace is remembered until Azure is told."""

SpanKind = Literal["internal", "client", "producer", "consumer"]
Value = str | int | tuple[str, ...]


class Span(NamedTuple):
    """One step in a trace; times are Unix time."""

    name: str
    kind: SpanKind
    context: TraceContext
    parent: TraceContext | None
    start: float
    end: float
    attributes: Mapping[str, Value]
    error: str | None = None
    links: tuple[TraceContext, ...] = ()


@dataclass(slots=True)
class Tracing:
    """The traces of one bridge. While it is off, nothing is built and nothing is kept.

    Only tasks of the event loop add to it. The journal's thread reads the traces of votes.
    """

    on: bool = False
    exported: int = 0
    dropped: int = 0
    waiting: deque[Span] = field(default_factory=deque)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    clock: Callable[[], float] = time.time
    _votes: dict[str, TraceContext] = field(default_factory=dict)

    def switch(self, *, on: bool) -> None:
        """Start to trace, or stop and forget."""
        self.on = on
        if not on:
            self.waiting.clear()
            self._votes.clear()

    def add(self, span: Span) -> None:
        if not self.on or not span.context.sampled:
            return
        if len(self.waiting) >= MOST:
            self.dropped += 1
            return
        self.waiting.append(span)
        self.news.set()

    def remember_vote(self, key: str, context: TraceContext) -> None:
        """Note the trace of a vote, by a name that is known when it has consequences."""
        self._votes.pop(key, None)
        if len(self._votes) >= MOST_VOTES:
            del self._votes[next(iter(self._votes))]
        self._votes[key] = context

    def vote(self, *keys: str | None) -> TraceContext | None:
        """The trace of the vote with the first of these names that is known."""
        if not self.on:
            return None
        found = (self._votes.get(key) for key in keys if key is not None)
        return next((context for context in found if context is not None), None)


def below(parent: TraceContext | None) -> TraceContext:
    """A place below *parent*, or in a new trace."""
    return parent.child() if parent is not None else new_trace()
