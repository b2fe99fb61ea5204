import asyncio
import json

import pytest
from hypothesis import given, settings
from pydantic import ValidationError
from support.chat_rules import PREFIX, check_pagerduty, ill_meant, told_of
from support.cloudevents import LARGEST, make
from support.journal_tools import NOW, opened
from support.recording_sink import at_work
from support.world import published

from bridge.delivery.dispatcher import Dispatcher
from bridge.plugins import Place, Rejected, Unavailable, read_format
from bridge.plugins.formats import find_format
from bridge.plugins.sinks import find_sink
from bridge.runtime.status import SinkStatus

PLUGIN = find_format("pagerduty")
EVENT_ID = "602D9444-D2CD-49C7-8624-8643E7171297"


def pager(**keys):
    given = {"type": "pagerduty", "routing_key": "0123456789abcdef0123456789abcdef"}
    return PLUGIN.open(read_format(given | keys))


PAGER = pager()


def said(cloudevent, format_=PAGER) -> dict:
    body = json.loads(format_.encode(cloudevent))
    check_pagerduty(body)
    return body


@pytest.mark.parametrize(
    ("kind", "action", "key"),
    [
        ("scheduled", "trigger", EVENT_ID),
        ("updated", "trigger", EVENT_ID),
        ("started", "trigger", EVENT_ID),
        ("completed", "resolve", EVENT_ID),
        ("canceled", "resolve", "C7061BAC-AFDC-4513-B24B-AA5F13A16123"),
        ("approval.granted", "acknowledge", EVENT_ID),
        ("approval.failed", "trigger", f"{EVENT_ID}/approval.failed"),
        ("approval.due", "trigger", f"{EVENT_ID}/approval.due"),
        ("source.degraded", "trigger", "source/13f56399-bd52-4150-9748-7190aae1ff21"),
        ("source.recovered", "resolve", "source/13f56399-bd52-4150-9748-7190aae1ff21"),
    ],
)
def test_each_kind_of_news_opens_calms_or_closes_an_alert(kind, action, key):
    cloudevent = told_of(kind)
    assert PAGER.wants(cloudevent)
    body = said(cloudevent)
    assert (body["event_action"], body["dedup_key"]) == (action, key)


@pytest.mark.parametrize(
    "kind", ["approval.recorded", "approval.refused", "source.snapshot", "bridge.audited", "new"]
)
def test_the_rest_pages_no_one(kind):
    cloudevent = told_of("scheduled") if kind == "new" else told_of(kind)
    if kind == "new":
        cloudevent = type(cloudevent)(cloudevent.id, f"{PREFIX}new.v1", "k", cloudevent.body)
    assert not PAGER.wants(cloudevent)
    with pytest.raises(Rejected, match="pagerduty cannot express azure"):
        PAGER.encode(cloudevent)


def test_the_start_may_acknowledge_the_alert_unless_no_one_was_paged_before():
    calming = pager(started="acknowledge")
    assert said(told_of("started"), calming)["event_action"] == "acknowledge"
    unannounced = told_of("started", previousStatus=None)
    assert said(unannounced, calming)["event_action"] == "trigger"
    assert said(told_of("completed"), calming)["event_action"] == "resolve"


@pytest.mark.parametrize(
    ("kind", "severity"),
    [
        ("completed", "info"),
        ("scheduled", "warning"),
        ("started", "warning"),
        ("source.degraded", "error"),
        ("approval.failed", "critical"),
    ],
)
def test_the_severity_follows_the_cloudevents(kind, severity):
    assert said(told_of(kind))["payload"]["severity"] == severity


def test_it_says_what_happens_to_whom_when_and_what_to_do():
    body = said(told_of("scheduled"))
    payload = body["payload"]
    assert payload["summary"].startswith(
        "In 14 min: Reboot of FrontEnd_IN_0 and BackEnd_IN_0. Azure will reboot FrontEnd_IN_0"
    )
    assert (payload["source"], payload["class"]) == ("FrontEnd_IN_0", "Reboot")
    assert payload["timestamp"] == "2026-11-15T12:01:00Z"
    assert payload["group"].endswith("resourcegroups/shop(prod)/scheduledevents")
    details = payload["custom_details"]
    assert details["when_ready"] == f"seb approve {EVENT_ID}"
    assert details["data"] == told_of("scheduled").data
    assert details["cloudevent"]["id"] == told_of("scheduled").id


def test_news_of_the_source_names_the_vm_that_speaks():
    assert said(told_of("source.degraded"))["payload"]["source"] == "FrontEnd_IN_0"
    nameless = told_of("source.degraded", vmId=None)
    assert said(nameless)["dedup_key"] == "source/FrontEnd_IN_0"


@pytest.mark.fuzz
@settings(max_examples=25)
@given(ill_meant())
def test_with_any_input_the_body_is_one_that_pagerduty_accepts(cloudevent):
    if PAGER.wants(cloudevent):
        usual = told_of(cloudevent.type.removeprefix(PREFIX).removesuffix(".v1"))
        action = said(usual)["event_action"]
        found = said(cloudevent)
        assert found["event_action"] in {action, "trigger"}


def test_the_largest_cloudevent_is_small_enough():
    assert len(PAGER.encode(make(size=LARGEST))) < 512 * 1024 / 4


def test_every_type_that_is_published_has_been_decided_on():
    decided = {kind for kind, each in published().items() if PAGER.wants(each)}
    assert {kind.removeprefix(PREFIX).removesuffix(".v1") for kind in decided} - {"approval.due"} == {
        "scheduled", "updated", "started", "completed", "canceled", "approval.granted",
        "approval.failed", "source.degraded", "source.recovered",
    }  # fmt: skip


# The routing key


def test_a_rotated_key_is_used_immediately(tmp_path):
    file = tmp_path / "key"
    file.write_text("old\n")
    rotating = pager(routing_key={"file": str(file)})
    assert said(told_of("started"), rotating)["routing_key"] == "old"
    file.write_text("brand-new\n")
    assert said(told_of("started"), rotating)["routing_key"] == "brand-new"


@pytest.mark.parametrize("text", [None, ""])
def test_without_its_key_it_waits(tmp_path, text):
    file = tmp_path / "key"
    if text is not None:
        file.write_text(text)
    with pytest.raises(Unavailable, match="routing_key"):
        pager(routing_key={"file": str(file)}).encode(told_of("started"))


def test_the_key_is_needed_and_never_shown():
    with pytest.raises(ValidationError, match="routing_key\n  Field required"):
        read_format({"type": "pagerduty"})
    shown = read_format({"type": "pagerduty", "routing_key": "s3cret"})
    assert "s3cret" not in repr(shown) + shown.model_dump_json()


# Through a real dispatcher, which skips what is overtaken


@pytest.fixture
async def journal(tmp_path):
    async with opened(tmp_path / "journal.db", "pager") as made:
        yield made


def worker(journal, tmp_path, **more) -> Dispatcher:
    plugin = find_sink("file")
    keys = {"type": "pagerduty", "routing_key": "key", **more}
    made = plugin.settings.model_validate(
        {"type": "file", "path": str(tmp_path / "page"), "format": keys}
    )
    assert made.stale == "skip"
    return Dispatcher("pager", plugin, made, Place, journal, SinkStatus("file", required=True))


def paged(tmp_path) -> list[tuple[str, str]]:
    lines = (tmp_path / "page").read_bytes().splitlines()
    bodies = [json.loads(line) for line in lines]
    return [(body["event_action"], body["dedup_key"]) for body in bodies]


async def record(journal, *kinds: str) -> None:
    await journal.append([told_of(kind) for kind in kinds], NOW)


async def test_what_was_triggered_is_resolved(journal, tmp_path):
    await record(journal, "scheduled")
    pump = worker(journal, tmp_path)
    async with at_work(pump), asyncio.timeout(20):
        await pump.drained()
        await record(journal, "approval.granted", "completed")
        await pump.drained()
    assert paged(tmp_path) == [
        ("trigger", EVENT_ID),
        ("acknowledge", EVENT_ID),
        ("resolve", EVENT_ID),
    ]


async def test_what_is_over_before_it_could_be_said_is_only_resolved(journal, tmp_path):
    await record(journal, "scheduled", "updated", "started", "completed")
    pump = worker(journal, tmp_path)
    async with at_work(pump), asyncio.timeout(20):
        await pump.drained()
    assert paged(tmp_path) == [("resolve", EVENT_ID)]


@pytest.mark.parametrize("action", ["acknowledge", "trigger"])
async def test_what_has_begun_before_it_could_be_said_is_told_as_asked_for(
    journal, tmp_path, action
):
    await record(journal, "scheduled", "started")
    pump = worker(journal, tmp_path, started=action)
    async with at_work(pump), asyncio.timeout(20):
        await pump.drained()
    assert paged(tmp_path) == [(action, EVENT_ID)]


async def test_what_a_pager_has_no_words_for_is_left_out_and_no_dead_letter(journal, tmp_path):
    await record(journal, "approval.recorded", "source.snapshot", "bridge.audited", "scheduled")
    pump = worker(journal, tmp_path)
    async with at_work(pump), asyncio.timeout(20):
        await pump.drained()
    assert paged(tmp_path) == [("trigger", EVENT_ID)]
    assert (pump.status.filtered, pump.status.rejected) == (3, 0)


async def test_trouble_with_an_approval_is_not_overtaken_by_the_end(journal, tmp_path):
    await record(journal, "scheduled", "approval.failed", "completed")
    pump = worker(journal, tmp_path)
    async with at_work(pump), asyncio.timeout(20):
        await pump.drained()
    assert paged(tmp_path) == [
        ("trigger", f"{EVENT_ID}/approval.failed"),
        ("resolve", EVENT_ID),
    ]
