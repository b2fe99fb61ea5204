"""Sends spans to an OTLP receiver over HTTP; imported only when traces are configured.

It waits for nobody and nobody waits for it: what a dead receiver does not take is dropped and
counted once the queue is full.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import aiohttp
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from bridge.common.computation import computed
from bridge.common.errors import Unavailable
from bridge.common.fields import Secret
from bridge.common.supervise import attempt, backoff
from bridge.plugins.credentials.secrets import read_secret
from bridge.plugins.credentials.tls import TLS
from bridge.telemetry.context import TraceContext
from bridge.telemetry.tracing import Span, SpanKind, Tracing, Value

log = logging.getLogger(__name__)

AT_ONCE = 256
TOGETHER = 1.0
"""How long the first span waits for others to go with it."""
TIMEOUT = 10.0
LONGEST_BACKOFF = 60.0
_LARGEST_ANSWER = 65536
_LATER = frozenset({408, 429, 502, 503, 504})
_KINDS: Mapping[SpanKind, trace_pb2.Span.SpanKind.ValueType] = {
    "internal": trace_pb2.Span.SPAN_KIND_INTERNAL,
    "client": trace_pb2.Span.SPAN_KIND_CLIENT,
    "producer": trace_pb2.Span.SPAN_KIND_PRODUCER,
    "consumer": trace_pb2.Span.SPAN_KIND_CONSUMER,
}


@dataclass(slots=True)
class Exporter:
    """Empties the queue of *tracing*. `resource` says which VM and version the spans are of."""

    tracing: Tracing
    url: str
    headers: Mapping[str, Secret]
    resource: Callable[[], Mapping[str, str]]
    together: float = TOGETHER
    _failures: int = 0
    _session: aiohttp.ClientSession | None = field(default=None, init=False)

    async def run(self) -> None:
        """Send what waits, now and then, until canceled."""
        async with self._client() as self._session:
            while True:
                self.tracing.news.clear()
                if not self.tracing.waiting:
                    await self.tracing.news.wait()
                await asyncio.sleep(self.together)
                while self.tracing.waiting and await self._send_some():
                    pass
                if self._failures:
                    await asyncio.sleep(1.0 + backoff(self._failures, most=LONGEST_BACKOFF))

    async def flush(self, limit: float) -> None:
        """Send what waits at the end, unless the receiver was dead the last time."""
        if self._failures or not self.tracing.waiting:
            return

        async def sent() -> None:
            async with self._client() as self._session:
                while self.tracing.waiting and await self._send_some():
                    pass

        await attempt(sent(), limit)

    @staticmethod
    def _client() -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=TIMEOUT),
            connector=aiohttp.TCPConnector(limit=1),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    async def _send_some(self) -> bool:
        """Send one batch; False if it must be sent again later."""
        waiting = self.tracing.waiting
        batch = [waiting[place] for place in range(min(AT_ONCE, len(waiting)))]
        result = await attempt(self._post(batch), TIMEOUT)
        if isinstance(result, Unavailable):
            self._failed(str(result))
            return False
        if self._failures:
            log.info("telemetry.recovered", extra={"url": self.url})
        self._failures = 0
        for _ in batch[: len(waiting)]:
            waiting.popleft()
        lost, why = result
        self.tracing.exported += len(batch) - lost
        self.tracing.dropped += lost
        if lost:
            log.warning("telemetry.refused", extra={"url": self.url, "error": why, "spans": lost})
        return True

    def _failed(self, error: str) -> None:
        self._failures += 1
        if self._failures == 1:
            log.warning("telemetry.unavailable", extra={"url": self.url, "error": error})

    async def _post(self, batch: Sequence[Span]) -> tuple[int, str]:
        """Send; return how many spans the receiver refused for good, and why."""
        if self._session is None:
            raise Unavailable("the exporter does not run")
        resource = self.resource()
        body = await computed(lambda: encoded(batch, resource), long=True)
        tls = TLS().context() if self.url.startswith("https:") else True
        given = {name: read_secret(one, f"the header {name}") for name, one in self.headers.items()}
        async with self._session.post(
            self.url,
            data=body,
            headers={**given, "Content-Type": "application/x-protobuf"},
            allow_redirects=False,
            ssl=tls,
        ) as answer:
            said = await answer.content.read(_LARGEST_ANSWER)
            if answer.status in _LATER or answer.status >= 500:
                raise Unavailable(f"it answered {answer.status}")
            if answer.status >= 300:
                return len(batch), f"it answered {answer.status}"
        return _refused(said, len(batch))


def _refused(said: bytes, most: int) -> tuple[int, str]:
    """How many spans a receiver that answered 200 did not take."""
    try:
        partial = ExportTraceServiceResponse.FromString(said).partial_success
    except ValueError:  # an answer in JSON, from a receiver that took them
        return 0, ""
    return max(0, min(partial.rejected_spans, most)), partial.error_message[:200]


def encoded(batch: Sequence[Span], resource: Mapping[str, str]) -> bytes:
    """The spans as one OTLP request."""
    request = ExportTraceServiceRequest()
    of = request.resource_spans.add()
    of.resource.attributes.extend(_attributes(resource))
    scope = of.scope_spans.add()
    scope.scope.name = "scheduled-events-bridge"
    scope.spans.extend(_span(one) for one in batch)
    return bytes(request.SerializeToString())


def _span(one: Span) -> trace_pb2.Span:
    made = trace_pb2.Span(
        name=one.name,
        kind=_KINDS[one.kind],
        trace_id=bytes.fromhex(one.context.trace_id),
        span_id=bytes.fromhex(one.context.span_id),
        parent_span_id=bytes.fromhex(one.parent.span_id) if one.parent else b"",
        start_time_unix_nano=int(one.start * 1e9),
        end_time_unix_nano=int(max(one.start, one.end) * 1e9),
        attributes=_attributes(one.attributes),
        links=[_link(link) for link in one.links],
    )
    if one.error is not None:
        made.status.code = trace_pb2.Status.STATUS_CODE_ERROR
        made.status.message = one.error
    return made


def _link(context: TraceContext) -> trace_pb2.Span.Link:
    return trace_pb2.Span.Link(
        trace_id=bytes.fromhex(context.trace_id), span_id=bytes.fromhex(context.span_id)
    )


def _attributes(values: Mapping[str, Value] | Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in values.items()]


def _value(value: Value) -> AnyValue:
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, tuple):
        return AnyValue(array_value=ArrayValue(values=[_value(one) for one in value]))
    return AnyValue(string_value=value)
