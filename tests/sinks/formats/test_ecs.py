"""ECS, against the field definitions of release 9.4.0."""

import pytest
from hypothesis import given, settings
from support.siem_events import bare, hostile, of_kind, refused_token
from support.siem_readers import read_ecs
from support.world import EVENT_ID, ME, OTHER, published

from bridge.plugins import kind_of, read_format
from bridge.plugins.formats import find_format

ECS = find_format("ecs").open(read_format("ecs"))
EVERY = [kind_of(each) for each in published().values()]


def said(cloudevent) -> dict:
    return read_ecs(ECS.encode(cloudevent))


def test_a_transition_is_an_event_of_its_host():
    document = said(of_kind("started"))
    assert document["@timestamp"] == "2026-11-15T12:03:00Z"
    event = document["event"]
    assert (event["kind"], event["category"], event["type"]) == ("event", ["host"], ["change"])
    assert (event["action"], event["code"]) == ("scheduled-event-started", "Reboot")
    assert (event["severity"], event["sequence"]) == (14, 3)
    assert document["related"]["hosts"] == [ME, OTHER]
    assert document["cloud"]["account"] == {"id": "8d10da13-8125-4ba9-a717-bf7490507b3d"}
    assert document["labels"] == {"site": "plant-7"}
    assert document["azure"]["scheduled_event"]["not_before"] == "2026-11-15T12:30:00Z"
    assert document["message"].startswith(
        "Azure has started to reboot FrontEnd_IN_0 and BackEnd_IN_0."
    )


@pytest.mark.parametrize(
    ("kind", "event_type", "expected"),
    [
        ("scheduled", "Terminate", "info"),
        ("started", "Freeze", "change"),
        ("started", "Preempt", "end"),
        ("started", "terminate", "end"),
        ("completed", "Reboot", "info"),
        ("canceled", "Reboot", "info"),
    ],
)
def test_the_type_is_never_start_which_would_mean_that_the_host_started(kind, event_type, expected):
    assert said(of_kind(kind, eventType=event_type))["event"]["type"] == [expected]


@pytest.mark.parametrize(
    ("kind", "types", "outcome"),
    [
        ("granted", ["allowed"], "success"),
        ("refused", ["denied"], "failure"),
        ("failed", ["info"], "failure"),
        ("recorded", ["info"], "unknown"),
    ],
)
def test_an_approval_is_an_event_of_an_api_with_an_outcome(kind, types, outcome):
    document = said(of_kind(f"approval.{kind}"))
    event = document["event"]
    assert (event["category"], event["type"], event["outcome"]) == (["api"], types, outcome)
    assert document["user"]["name"] == of_kind(f"approval.{kind}").data["approver"]
    assert document["azure"]["scheduled_event"]["event_id"] == EVENT_ID
    assert document["azure"]["approval"]["decision"] == "approve"


def test_an_audit_says_what_was_done_from_where_and_with_what_outcome():
    document = said(refused_token())
    event = document["event"]
    assert (event["action"], event["outcome"], event["severity"]) == (
        "token-refused",
        "failure",
        13,
    )
    assert (event["category"], event["code"]) == (["authentication"], "azse.audit.token.refused")
    assert document["source"]["ip"] == "192.0.2.7"
    assert document["related"]["ip"] == ["192.0.2.7"]
    assert document["host"]["id"] == "13f56399-bd52-4150-9748-7190aae1ff21"
    dropped = said(of_kind("bridge.audited"))
    assert (dropped["event"]["category"], dropped["event"]["outcome"]) == (
        ["configuration"],
        "success",
    )
    assert "source" not in dropped


@pytest.mark.parametrize("kind", [k for k in EVERY if not k.startswith(("approval", "bridge"))])
def test_nothing_else_has_an_outcome(kind):
    assert "outcome" not in said(of_kind(kind))["event"]


def test_a_snapshot_is_a_state_and_lists_what_is_pending():
    document = said(of_kind("source.snapshot"))
    assert document["event"]["kind"] == "state"
    assert document["azure"]["metadata_service"]["pending"] == [EVENT_ID]


@pytest.mark.parametrize(
    ("seconds", "expected"), [(9, 9_000_000_000), (0, 0), (-1, None), (1e300, None), (None, None)]
)
def test_a_duration_is_in_nanoseconds_and_only_there_when_known(seconds, expected):
    document = said(of_kind("scheduled", durationInSeconds=seconds))
    assert document["event"].get("duration") == expected


@pytest.mark.parametrize("kind", EVERY)
def test_no_field_of_the_data_is_needed(kind):
    assert said(bare(kind))["host"]["name"] == ME


def test_drills_and_cuts_are_tagged():
    assert "tags" not in said(of_kind("scheduled"))
    document = said(of_kind("scheduled", drill=True, description="é" * 600))
    assert document["tags"] == ["drill", "truncated"]
    assert document["event"]["reason"] == "é" * 510 + "…"
    assert document["azure"]["scheduled_event"]["description"] == "é" * 600
    assert said(of_kind("scheduled", resourcesTruncated=2))["tags"] == ["truncated"]


def test_a_label_never_becomes_an_object():
    observer = of_kind("scheduled").data["observer"] | {"labels": {"a.b": "c"}}
    assert said(of_kind("scheduled", observer=observer))["labels"] == {"a_b": "c"}


def types(own: dict) -> dict[str, type]:
    return {f"{a}.{b}": type(each) for a, inner in own.items() for b, each in inner.items()}


USUAL = {
    name: kind for each in published().values() for name, kind in types(said(each)["azure"]).items()
}
USUAL |= dict.fromkeys(("scheduled_event.changes", "scheduled_event.extra"), str)


@pytest.mark.fuzz
@settings(max_examples=25)
@given(hostile())
def test_any_input_keeps_its_types(cloudevent):
    found = types(said(cloudevent).get("azure", {}))
    for name in set(found) & set(USUAL):
        assert found[name] is USUAL[name] or {found[name], USUAL[name]} == {int, float}, name
