import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from support.otlp_receiver import receiver
from support.served_bridge import runtime
from support.until import until

from bridge.app.traces import TraceExport
from bridge.config import Config
from bridge.telemetry.context import new_trace
from bridge.telemetry.tracing import Span


def span() -> Span:
    return Span("poll", "client", new_trace(), None, 1.0, 2.0, {})


@asynccontextmanager
async def export(folder, otlp: str | None):
    async with runtime(config(folder, otlp)) as made, asyncio.TaskGroup() as group:
        exporting = TraceExport(made, group)
        yield exporting
        await exporting.close()


def config(folder, otlp: str | None) -> Config:
    values: dict[str, Any] = {"state_dir": folder, "telemetry": {"otlp": otlp}}
    return Config.model_validate(values)


async def test_spans_are_of_this_version_on_this_vm(tmp_path):
    async with receiver() as at, export(tmp_path, at.url) as exporting:
        await exporting.configure()
        tracing = exporting.runtime.tracing
        tracing.add(span())
        await until(lambda: at.spans, "the span")
    known = at.resource
    assert known["service.name"] == "scheduled-events-bridge"
    assert known["service.version"] == "1.2.3"
    assert known["host.name"] == exporting.runtime.identity.vm_name
    assert {"host.id", "cloud.region", "cloud.account.id"} <= known.keys()


async def test_another_receiver_takes_over_and_none_ends_it(tmp_path):
    async with receiver() as one, receiver() as other, export(tmp_path, one.url) as exporting:
        tracing = exporting.runtime.tracing
        for url, at in ((one.url, one), (other.url, other)):
            exporting.runtime.configure(config(tmp_path, url))
            await exporting.configure()
            await exporting.configure()
            tracing.add(span())
            await until(partial(getattr, at, "spans"), "the span")
        exporting.runtime.configure(config(tmp_path, None))
        await exporting.configure()
        tracing.add(span())
        assert (tracing.on, len(tracing.waiting)) == (False, 0)
    assert (len(one.spans), len(other.spans)) == (1, 1)


async def test_what_is_left_at_the_end_is_sent_also_by_a_bridge_that_ran_once(tmp_path):
    async with receiver() as at:
        async with export(tmp_path, at.url) as exporting:
            exporting.runtime.tracing.switch(on=True)
            exporting.runtime.tracing.add(span())
        assert len(at.spans) == 1
