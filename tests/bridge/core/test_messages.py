"""Every message that we publish: what it says, and that it conforms."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cloudevents.core.bindings import http, kafka
from cloudevents.core.formats.json import JSONFormat
from support.messages import ABOUT, TABLE, check, told, transition_of
from support.world import (
    EVENT_ID,
    INSTANCE,
    ME,
    NOON,
    NOTICE,
    OBSERVER,
    OTHER,
    World,
    published,
    scheduled_event,
    started,
)

from bridge.core import messages
from bridge.core.cloudevent import CloudEvent, TransitionKind
from bridge.core.diff import SETTLING
from bridge.core.observer import Observer

EVERY = pytest.mark.parametrize(("kind", "schema", "severity"), TABLE, ids=str)


def one(kind: str) -> CloudEvent:
    return published()[f"azure.scheduledevents.{kind}.v1"]


def test_the_table_contains_every_type():
    kinds = [row[0] for row in TABLE]

    assert kinds == list(messages.KINDS)
    assert {f"azure.scheduledevents.{kind}.v1" for kind in kinds} == set(published())


@EVERY
def test_every_type_conforms_to_its_schema(kind: str, schema: str, severity: int):
    made = one(kind)

    check(made)
    assert made.attributes["dataschema"] == f"urn:scheduled-events-bridge:schema:{schema}:v1"
    assert made.attributes["severitynumber"] == severity


@EVERY
def test_the_sdk_reads_back_what_we_write(kind: str, schema: str, severity: int):
    made = one(kind)
    read = JSONFormat().read(None, made.body)
    attributes = {**read.get_attributes(), "time": made.attributes["time"]}

    assert read.get_data() == made.data
    assert attributes == made.attributes
    assert read.get_time() == datetime.fromisoformat(made.attributes["time"])


@EVERY
@pytest.mark.parametrize("binding", ["http", "kafka"])
def test_the_sdk_carries_it_over_bindings_and_back(
    kind: str, schema: str, severity: int, binding: str
):
    made = JSONFormat().read(None, one(kind).body)
    if binding == "http":
        read = http.from_http(http.to_binary(made, JSONFormat()), JSONFormat())
    else:
        read = kafka.from_kafka(kafka.to_binary(made, JSONFormat()), JSONFormat())

    written = {name: str(value) for name, value in made.get_attributes().items()}
    assert {name: str(value) for name, value in read.get_attributes().items()} == written
    assert read.get_data() == made.get_data()


@EVERY
def test_every_type_has_the_attributes_of_the_contract(kind: str, schema: str, severity: int):
    attributes = one(kind).attributes
    about_azure = schema in {"scheduled-event", "approval-outcome"}

    assert attributes["specversion"] == "1.0"
    assert attributes["datacontenttype"] == "application/json"
    assert attributes["observer"] == ME
    assert (attributes["subject"] == ME) is not about_azure
    assert ("correlationid" in attributes) is about_azure
    assert attributes.get("correlationid", ME) == attributes["subject"]
    assert attributes["source"] == (
        "/subscriptions/8d10da13-8125-4ba9-a717-bf7490507b3d/resourcegroups/shop(prod)"
        "/scheduledevents"
    )


@pytest.mark.parametrize(
    ("what", "status", "rank", "approvable"),
    [
        ("scheduled", "Scheduled", 1, True),
        ("updated", "Scheduled", 1, True),
        ("started", "Started", 2, False),
        ("canceled", "Canceled", 3, False),
        ("completed", "Completed", 4, False),
    ],
)
def test_status_rank_and_what_an_approval_is_worth(what, status, rank, approvable):
    data = check(told(transition_of(what)))

    assert (data["status"], data["rank"], data["approvable"]) == (status, rank, approvable)
    assert (data["approveBy"] is not None) is approvable
    assert (data["noticeSeconds"] is not None) is approvable
    assert data["notBefore"] == "2026-11-15T12:15:00Z"


def test_the_time_that_is_left_is_counted_from_now_and_may_be_negative():
    observer = replace(OBSERVER, margin=timedelta(seconds=30))
    late = NOON + NOTICE + timedelta(seconds=1.26)

    assert told(transition_of("scheduled")).data["noticeSeconds"] == 900.0
    assert told(transition_of("scheduled"), now=late).data["noticeSeconds"] == -1.3
    assert told(transition_of("scheduled"), observer).data["approveBy"] == "2026-11-15T12:14:30Z"


def test_an_event_without_a_time_has_no_notice():
    data = check(told(transition_of("scheduled", not_before=None)))

    assert (data["notBefore"], data["approveBy"], data["noticeSeconds"]) == (None, None, None)


def test_the_year_one_is_accepted():
    data = check(told(transition_of("scheduled", not_before=datetime(1, 1, 1, tzinfo=UTC))))

    assert data["approveBy"] == data["notBefore"] == "0001-01-01T00:00:00Z"


@pytest.mark.parametrize("what", ["scheduled", "started", "completed"])
@pytest.mark.parametrize("kind", ["Preempt", "terminate", "Reboot"])
def test_only_the_start_of_preempt_and_terminate_is_terminal(what: TransitionKind, kind: str):
    data = told(transition_of(what, event_type=kind)).data

    assert data["terminal"] is (what == "started" and kind != "Reboot")


@pytest.mark.parametrize(
    ("what", "kind", "previous", "severity", "text"),
    [
        ("completed", "Reboot", "Started", 9, "INFO"),
        ("completed", "Terminate", "Started", 9, "INFO"),
        ("canceled", "Preempt", "Scheduled", 9, "INFO"),
        ("scheduled", "Freeze", None, 10, "INFO"),
        ("started", "freeze", "Scheduled", 10, "INFO"),
        ("scheduled", "Reboot", None, 13, "WARN"),
        ("updated", "Redeploy", "Scheduled", 13, "WARN"),
        ("scheduled", "Levitate", None, 13, "WARN"),
        ("started", "Reboot", "Scheduled", 14, "WARN"),
        ("started", "Redeploy", "Scheduled", 14, "WARN"),
        ("scheduled", "Preempt", None, 17, "ERROR"),
        ("updated", "Terminate", "Scheduled", 17, "ERROR"),
        ("started", "Preempt", "Scheduled", 17, "ERROR"),
        ("started", "Reboot", None, 18, "ERROR"),
        ("started", "Freeze", None, 18, "ERROR"),
        ("started", "Terminate", None, 18, "ERROR"),
    ],
)
def test_the_severity_of_a_transition(what, kind, previous, severity, text):
    happened = replace(transition_of(what, event_type=kind), previous_status=previous)
    attributes = told(happened).attributes

    assert (attributes["severitynumber"], attributes["severitytext"]) == (severity, text)


def test_the_event_id_is_written_in_upper_case_everywhere():
    made = told(transition_of("scheduled", event_id=EVENT_ID.lower()))

    assert made.data["eventId"] == made.key == made.attributes["correlationid"] == EVENT_ID
    assert EVENT_ID.lower() not in made.body.decode()


def test_unknown_fields_pass_through_as_extra():
    data = check(told(transition_of("scheduled", extra={"Severity": {"Level": [1, None]}})))

    assert data["extra"] == {"Severity": {"Level": [1, None]}}
    assert "extra" not in told(transition_of("scheduled")).data


def test_fields_that_the_api_version_lacks_are_null():
    lacking = {"description": None, "event_source": None, "duration": None, "resource_type": None}
    data = check(told(transition_of("scheduled", **lacking)))

    assert data["description"] is data["eventSource"] is data["durationInSeconds"] is None


def test_a_snapshot_lists_what_was_announced_and_is_not_known_to_be_over():
    world = World()
    foreign = scheduled_event("C", resources=(OTHER,))
    world.see(scheduled_event("A"), started(scheduled_event("B")), foreign)
    world.boot()
    world.see(started(scheduled_event("B")), foreign, after=SETTLING / 5)

    data = check(messages.source("snapshot", ABOUT, OBSERVER, NOON, world.state.tracked))

    listed = [(each["eventId"], each["status"]) for each in data["pending"]]
    assert sorted(listed) == [("A", "Scheduled"), ("B", "Started")]


def test_reports_that_begin_in_the_same_second_have_the_same_id():
    soon = replace(ABOUT, since=NOON + timedelta(milliseconds=999))
    next_second = replace(ABOUT, since=NOON + timedelta(seconds=1))
    ids = [messages.source("degraded", a, OBSERVER, NOON).id for a in (ABOUT, soon, next_second)]

    assert ids[0] == ids[1] != ids[2]


def test_source_and_id_are_the_same_on_every_vm_of_a_group():
    neighbor = replace(INSTANCE, name=OTHER, vm_id="another", hostname="backend0", tags={})
    mine, theirs = (
        told(transition_of("scheduled"), Observer(vm)).attributes for vm in (INSTANCE, neighbor)
    )

    assert mine["observer"] != theirs["observer"]
    assert (mine["source"], mine["id"]) == (theirs["source"], theirs["id"])
