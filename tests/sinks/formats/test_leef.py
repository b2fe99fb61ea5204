"""LEEF, read back by a small reader made from IBM's guide."""

from datetime import UTC, datetime
from importlib.metadata import version

import pytest
from hypothesis import given, settings
from support.siem_events import bare, hostile, of_kind, refused_token
from support.siem_readers import read_leef
from support.world import EVENT_ID, published

from bridge.plugins import class_id, kind_of, read_format, severity
from bridge.plugins.formats import find_format

LEEF = find_format("leef").open(read_format("leef"))
EVERY = [kind_of(each) for each in published().values()]


def said(cloudevent) -> dict[str, str]:
    return read_leef(LEEF.encode(cloudevent))[1]


def test_a_transition_in_full():
    header, pairs = read_leef(LEEF.encode(of_kind("started")))
    assert header == [
        "LEEF:2.0",
        "scheduled-events-bridge",
        "Azure Scheduled Events",
        version("scheduled-events-bridge"),
        "azse.reboot.started",
        "^",
    ]
    assert pairs == {
        "devTime": "2026-11-15T12:03:00.000+0000",
        "devTimeFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSZ",
        "sev": "7",
        "cat": "ScheduledEvent/Started",
        "vSrcName": "FrontEnd_IN_0",
        "vmId": "13f56399-bd52-4150-9748-7190aae1ff21",
        "eventId": EVENT_ID,
        "cloudEventId": of_kind("started").id,
        "scope": of_kind("started").attributes["source"],
        "eventType": "Reboot",
        "notBefore": "2026-11-15T12:30:00Z",
        "resources": "FrontEnd_IN_0,BackEnd_IN_0",
        "msg": "Virtual machine is being restarted as requested by authorized user.",
        "eventSource": "User",
        "durationInSeconds": "-1",
    }


def test_an_approval_names_its_user_and_its_resource():
    refused, recorded = said(of_kind("approval.refused")), said(of_kind("approval.recorded"))
    assert (refused["usrName"], refused["reason"]) == ("billing", "resource-required")
    assert (recorded["usrName"], recorded["resource"]) == ("orders-service", "FrontEnd_IN_0")
    assert (recorded["decision"], recorded["via"]) == ("approve", "orders-bus")


def test_the_source_and_the_bridge_have_their_words_too():
    degraded, audited = said(of_kind("source.degraded")), said(of_kind("bridge.audited"))
    assert (degraded["url"], degraded["httpStatus"]) == ("http://169.254.169.254", "503")
    assert said(of_kind("source.snapshot"))["pending"] == EVENT_ID
    assert (audited["usrName"], audited["action"]) == ("ops", "dead-letter.dropped")


def test_an_audit_says_what_was_done_from_where_and_with_what_outcome():
    header, found = read_leef(LEEF.encode(refused_token()))
    assert header[4] == "azse.audit.token.refused"
    assert (found["src"], found["outcome"], found["sev"]) == ("192.0.2.7", "failure", "7")
    assert found["vmId"] == "13f56399-bd52-4150-9748-7190aae1ff21"


@pytest.mark.parametrize("cloudevent", published().values(), ids=lambda each: each.type)
def test_id_severity_and_time_are_those_of_the_cloudevent(cloudevent):
    header, pairs = read_leef(LEEF.encode(cloudevent))
    assert header[4] == class_id(cloudevent)
    assert 1 <= int(pairs["sev"]) == severity(cloudevent).leef <= 10
    moment = datetime.strptime(pairs["devTime"], "%Y-%m-%dT%H:%M:%S.%f%z")
    assert moment == datetime.fromisoformat(cloudevent.attributes["time"]).astimezone(UTC)


@pytest.mark.parametrize("kind", EVERY)
def test_no_field_of_the_data_is_needed(kind):
    assert said(bare(kind))["vSrcName"] == "FrontEnd_IN_0"


def test_a_drill_says_so():
    assert said(of_kind("scheduled", drill=True))["drill"] == "true"
    assert "drill" not in said(of_kind("scheduled"))


def test_what_leef_has_no_escape_for_becomes_a_space():
    found = said(of_kind("scheduled", description="a|b^c\td\r\ne=f\u2028g\x00"))
    assert found["msg"] == "a b c d e=f g"


def test_what_is_cut_is_named():
    names = [f"scale-set_{n}" for n in range(200)]
    found = said(of_kind("scheduled", resources=names, description="é" * 600))
    assert found["truncated"] == "resources,msg"
    assert found["msg"] == "é" * 448 + "…"
    *kept, more = found["resources"].split(",")
    assert kept == names[: len(kept)]
    assert more == f"+{200 - len(kept)}"


@pytest.mark.fuzz
@settings(max_examples=25)
@given(hostile())
def test_any_input_is_one_line_of_at_most_4096_bytes(cloudevent):
    line = LEEF.encode(cloudevent)
    found = read_leef(line)[1]
    assert len(line) <= 4096
    assert set(found) - {"truncated"} <= set(said(of_kind(kind_of(cloudevent)))) | {
        *("eventId", "reason", "resource", "msg", "usrName", "decision", "pending", "url"),
        *("httpStatus", "vmId", "via", "action", "src"),
    }
    description = cloudevent.data.get("description") or ""
    if "msg" in found and description:
        kept = (
            found["msg"].removesuffix("…") if "msg" in found.get("truncated", "") else found["msg"]
        )
        assert [c for c in kept if c.isalnum()] == [c for c in description if c.isalnum()][
            : len([c for c in kept if c.isalnum()])
        ]
