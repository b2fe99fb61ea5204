"""Splunk's envelope: what its HTTP Event Collector accepts, and the names of CIM's Change model."""

import pytest
from hypothesis import given, settings
from pydantic import ValidationError
from support.siem_events import bare, hostile, of_kind, refused_token
from support.siem_readers import read_json
from support.world import EVENT_ID, ME, OTHER, published

from bridge.plugins import Misconfigured, kind_of, read_format
from bridge.plugins.formats import find_format

EVERY = [kind_of(each) for each in published().values()]
KEYS = {"time", "host", "source", "sourcetype", "index", "event", "fields"}
ACTIONS = {"created", "deleted", "modified", "read", "started", "stopped"}


def said(cloudevent, **keys) -> dict:
    written = {"type": "splunk-hec", **keys}
    envelope = read_json(find_format("splunk-hec").open(read_format(written)).encode(cloudevent))
    assert set(envelope) <= KEYS
    assert isinstance(envelope["time"], float)
    for value in envelope["fields"].values():
        assert isinstance(value, str) or all(isinstance(each, str) for each in value)
    assert envelope["fields"]["action"] in ACTIONS
    return envelope


def test_a_transition_in_full():
    envelope = said(of_kind("started"))
    assert envelope["event"] == of_kind("started").envelope
    assert (envelope["time"], envelope["host"]) == (1794744180.0, ME)
    assert envelope["sourcetype"] == "azure:scheduledevents"
    assert envelope["source"] == of_kind("started").attributes["source"]
    assert "index" not in envelope
    assert envelope["fields"] == {
        "action": "started",
        "change_type": "instance",
        "object": [ME, OTHER],
        "object_category": "instance",
        "object_id": EVENT_ID,
        "dest": ME,
        "dvc": ME,
        "status": "success",
        "signature": "Reboot",
        "signature_id": "azse.reboot.started",
        "vendor_product": "scheduled-events-bridge",
    }


def test_the_operator_may_say_where_it_goes():
    keys = {"index": "maintenance", "sourcetype": "st", "host": "h", "source": "s"}
    assert said(of_kind("started"), **keys).items() >= keys.items()


def test_a_wrong_key_is_refused():
    for wrong in ({"indx": "x"}, {"index": ""}, {"sourcetype": 5}):
        with pytest.raises((ValidationError, Misconfigured)):
            read_format({"type": "splunk-hec", **wrong})


def test_fractions_of_a_second_stay():
    cloudevent = of_kind("started")
    body = cloudevent.body.replace(b"12:03:00Z", b"12:03:00.123Z")
    assert said(type(cloudevent).decode(body))["time"] == 1794744180.123


@pytest.mark.parametrize(
    ("kind", "status", "user"),
    [
        ("approval.granted", "success", "billing"),
        ("approval.refused", "failure", "billing"),
        ("approval.failed", "failure", "billing"),
        ("bridge.audited", "success", "ops"),
        ("source.degraded", "failure", None),
    ],
)
def test_who_did_it_and_whether_it_worked(kind, status, user):
    fields = said(of_kind(kind))["fields"]
    assert (fields["status"], fields.get("user")) == (status, user)


def test_an_audit_says_from_where_it_was_asked_and_whether_it_worked():
    fields = said(refused_token())["fields"]
    assert (fields["src"], fields["status"]) == ("192.0.2.7", "failure")
    assert fields["signature_id"] == "azse.audit.token.refused"
    assert fields["dvc"] == "FrontEnd_IN_0"


def test_fields_at_index_time_are_short():
    long = of_kind("approval.refused", reason="é" * 600, resources=[f"vm-{n}" for n in range(200)])
    fields = said(long)["fields"]
    assert fields["result"] == "é" * 510 + "…"
    assert len(fields["object"]) == 100


@pytest.mark.parametrize("kind", EVERY)
def test_no_field_of_the_data_is_needed(kind):
    assert said(bare(kind))["host"] == ME


@pytest.mark.fuzz
@settings(max_examples=25)
@given(hostile())
def test_any_input_is_whole_in_the_event_and_short_in_the_fields(cloudevent):
    envelope = said(cloudevent)
    assert repr(envelope["event"]) == repr(cloudevent.envelope)
    for value in envelope["fields"].values():
        assert all(
            len(each.encode()) <= 1024 for each in ([value] if isinstance(value, str) else value)
        )
        assert isinstance(value, str) or len(value) <= 100
