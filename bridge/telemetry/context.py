"""The W3C trace context: which trace something belongs to, as `traceparent` writes it; pure."""

import os
import re
from typing import NamedTuple

TRACEPARENT = "traceparent"
"""The name of the CloudEvents attribute, and of the header."""
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_LONGEST = 256


class TraceContext(NamedTuple):
    """A place in a trace. What is not sampled is passed on, and not exported."""

    trace_id: str
    span_id: str
    sampled: bool = True

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"

    def child(self) -> "TraceContext":
        """Another place in the same trace."""
        return self._replace(span_id=_fresh(8))


def new_trace() -> TraceContext:
    return TraceContext(_fresh(16), _fresh(8))


def read_traceparent(text: object) -> TraceContext | None:
    """The context, or None for anything else: a wrong one never matters for what it came with."""
    found = _FORM.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more):
        return None
    if not trace_id.strip("0") or not span_id.strip("0"):
        return None
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & 1))


def _fresh(size: int) -> str:
    """A random id; one of zeros would be invalid."""
    while not (made := os.urandom(size).hex()).strip("0"):
        continue
    return made
