"""A receiver of OTLP over HTTP: it decodes requests with the published protobuf definitions."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Receiver:
    """What it got; `status` is its answer, `refuses` how many spans of each request it rejects.

    It answers when `answers` is set.
    """

    url: str = ""
    status: int = 200
    refuses: int = 0
    answers: asyncio.Event = field(default_factory=asyncio.Event)
    requests: list[tuple[dict[str, str], ExportTraceServiceRequest]] = field(default_factory=list)

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for _, request in self.requests
            for of in request.resource_spans
            for scope in of.scope_spans
            for span in scope.spans
        ]

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    @property
    def resource(self) -> dict[str, Any]:
        return plain(self.requests[-1][1].resource_spans[0].resource.attributes)

    async def take(self, request: web.Request) -> web.Response:
        assert request.headers["Content-Type"] == "application/x-protobuf"
        await self.answers.wait()
        if self.status == 200:
            decoded = ExportTraceServiceRequest.FromString(await request.read())
            self.requests.append((dict(request.headers), decoded))
        answer = ExportTraceServiceResponse()
        answer.partial_success.rejected_spans = self.refuses
        return web.Response(
            status=self.status,
            body=answer.SerializeToString(),
            content_type="application/x-protobuf",
        )


def plain(attributes: Any) -> dict[str, Any]:
    """Attributes as Python values."""
    return {one.key: _value(one.value) for one in attributes}


def _value(value: Any) -> Any:
    if value.WhichOneof("value") == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, value.WhichOneof("value"))


@asynccontextmanager
async def receiver(path: str = "/v1/traces") -> AsyncGenerator[Receiver]:
    made = Receiver()
    made.answers.set()
    app = web.Application()
    app.router.add_post(path, made.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield made
    finally:
        made.answers.set()
        await runner.cleanup()
