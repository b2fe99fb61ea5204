"""OCSF, against the rules of release 1.8.0."""

import jsonschema_rs
import pytest
from hypothesis import given, settings
from support.siem_events import bare, hostile, of_kind, refused_token
from support.siem_readers import OCSF as RULES
from support.siem_readers import read_ocsf
from support.world import EVENT_ID, ME, OTHER, published

from bridge.plugins import kind_of, read_format, severity
from bridge.plugins.formats import find_format

OCSF = find_format("ocsf").open(read_format("ocsf"))
EVERY = [kind_of(each) for each in published().values()]


def said(cloudevent) -> dict:
    return read_ocsf(OCSF.encode(cloudevent))


@pytest.mark.parametrize(
    ("kind", "type_uid", "activity", "state"),
    [
        ("scheduled", 100601, "Create", 2),
        ("updated", 100602, "Update", 2),
        ("started", 100606, "Start", 3),
        ("canceled", 100603, "Delete", 4),
        ("completed", 100699, "Completed", 4),
    ],
)
def test_a_transition_is_the_activity_of_a_scheduled_job(kind, type_uid, activity, state):
    record = said(of_kind(kind))
    assert (record["type_uid"], record["activity_name"]) == (type_uid, activity)
    assert record["job"]["run_state_id"] == state
    assert record["job"]["name"] == f"Reboot {of_kind(kind).data['eventId']}"
    assert record["job"]["desc"].startswith("Virtual machine is being restarted")
    assert ("next_run_time" in record["job"]) == (state == 2)


@pytest.mark.parametrize(
    ("kind", "status", "operation"),
    [("granted", 1, "StartRequests"), ("recorded", 1, "approve"), ("refused", 2, "approve")],
)
def test_an_approval_is_the_activity_of_an_api(kind, status, operation):
    record = said(of_kind(f"approval.{kind}"))
    assert record["type_uid"] == 600303
    assert record["status_id"] == status
    assert record["api"]["operation"] == operation
    assert [(each["name"], each["role_id"]) for each in record["resources"]] == [
        (ME, 3),
        (OTHER, 3),
    ]
    assert record["actor"]["user"]["name"] == of_kind(f"approval.{kind}").data["approver"]


def test_why_an_approval_was_refused_is_its_status():
    record = said(of_kind("approval.refused"))
    assert record["status_code"] == "resource-required"
    assert record["status_detail"].startswith("the event has several VMs")


def test_an_audit_is_the_activity_of_an_api_from_an_address_and_with_an_outcome():
    record = said(refused_token())
    assert (record["type_uid"], record["activity_name"]) == (600399, "token.refused")
    assert (record["api"]["operation"], record["status"]) == ("token.refused", "Failure")
    assert record["src_endpoint"]["ip"] == "192.0.2.7"
    assert record["actor"]["user"]["name"] == "unknown"
    assert record["device"]["instance_uid"] == "13f56399-bd52-4150-9748-7190aae1ff21"
    assert record["unmapped"]["detail"] == {"count": 3}
    own = said(of_kind("bridge.audited"))
    assert (own["status"], own["src_endpoint"]["name"]) == ("Success", "FrontEnd_IN_0")


@pytest.mark.parametrize(
    "kind",
    ["approval.due", *(kind for kind in EVERY if kind.startswith("source"))],
)
def test_all_else_is_a_base_event(kind):
    record = said(of_kind(kind))
    assert (record["class_uid"], record["type_uid"], record["activity_name"]) == (0, 99, kind)
    known = {name for name, value in of_kind(kind).data.items() if value not in (None, [])}
    assert set(record["unmapped"]) == known


@pytest.mark.parametrize("cloudevent", published().values(), ids=lambda each: each.type)
def test_every_record_says_when_where_and_how_bad(cloudevent):
    record = said(cloudevent)
    assert 1794744000000 <= record["time"] <= 1794744999000
    assert record["severity_id"] == severity(cloudevent).ocsf
    assert record["metadata"]["uid"] == cloudevent.id
    assert record["device"]["name"] == ME
    assert record["cloud"]["account"]["uid"] == "8d10da13-8125-4ba9-a717-bf7490507b3d"


def test_the_event_is_what_correlates_its_records():
    for kind in ("scheduled", "started", "approval.granted"):
        assert said(of_kind(kind))["metadata"]["correlation_uid"] == EVENT_ID


@pytest.mark.parametrize("kind", EVERY)
def test_no_field_of_the_data_is_needed(kind):
    assert said(bare(kind))["device"]["name"] == ME


def test_drills_and_what_was_left_out_are_marked():
    metadata = said(of_kind("scheduled", drill=True, resourcesTruncated=3))["metadata"]
    assert (metadata["labels"], metadata["is_truncated"]) == (["drill"], True)
    assert {"labels", "is_truncated"} & set(said(of_kind("scheduled"))["metadata"]) == set()


def test_a_record_that_breaks_the_rules_is_found_out():
    record = said(of_kind("started"))
    wrongs: list[dict[str, object]] = [
        {"job": {}},
        {"made_up": 1},
        {"time": "2026-11-15T12:00:00Z"},
        {"type_uid": 1},
    ]
    for wrong in wrongs:
        with pytest.raises(jsonschema_rs.ValidationError):
            RULES.validate(record | wrong)


@pytest.mark.fuzz
@settings(max_examples=25)
@given(hostile())
def test_any_input_keeps_to_the_rules(cloudevent):
    record = said(cloudevent)
    if "job" in record:
        assert record["job"].get("desc", "") == (cloudevent.data["description"] or "")
