"""Requests made from the OpenAPI document: whatever they hold, the answers are as it says."""

import asyncio
import json
import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from support.bridge import Azure
from support.guarded_bridge import TOKENS
from support.served_bridge import announce, bridge, config, kill

from bridge.approvals.service import ApprovalService
from bridge.common import schemas
from bridge.runtime.status import ReloadResult

EXAMPLES = 12
EVENT_ID = "602D9444-D2CD-49C7-8624-8643E7171297"
ENDLESS = {"/api/v1/stream"}


async def prepare(made):
    service = ApprovalService(made.runtime, Azure())
    made.runtime.take_local = service.intake.take_local

    async def reload(actor, via):
        return ReloadResult("applied", 1.0, actor, via)

    made.runtime.reload = reload
    (told,) = await announce(made.journal, EVENT_ID)
    await kill(made.journal, "bus", told)


@contextmanager
def served(folder):
    """A bridge in a thread of its own; yields its address."""
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    found = []

    async def run():
        async with bridge(config(folder, tokens=TOKENS)) as made:
            await prepare(made)
            found.append(made.http.base)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()))
    thread.start()
    try:
        assert ready.wait(20)
        yield found[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()


@pytest.mark.timeout(180)
@pytest.mark.filterwarnings("ignore")
def test_every_operation_answers_as_its_document_says(tmp_path, monkeypatch):
    import schemathesis  # noqa: PLC0415  slow to import, for one test
    from schemathesis import checks  # noqa: PLC0415
    from schemathesis.core.result import Ok  # noqa: PLC0415

    monkeypatch.setattr("bridge.web.limits.Limiter.delay", lambda *_: 0.0)
    document = schemathesis.openapi.from_dict(json.loads(schemas.read("openapi")))
    wanted = [
        checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]
    tried, seen = set(), set()
    with served(tmp_path) as base:
        for found in document.get_all_operations():
            assert isinstance(found, Ok)
            operation = found.ok()
            if operation.path in ENDLESS:
                continue

            @settings(
                max_examples=EXAMPLES,
                deadline=timedelta(seconds=30),
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
                database=None,
            )
            @given(case=operation.as_strategy())
            def attempt(case):
                headers = {"Authorization": "Bearer ops-secret"}
                answer = case.call_and_validate(base_url=base, headers=headers, checks=wanted)
                seen.add(answer.status_code)

            attempt()
            tried.add(operation.label)
    assert len(tried) == 31
    assert {200, 401, 404} <= seen
