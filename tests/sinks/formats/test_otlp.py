"""OTLP logs, read back by the code that protobuf generates from OpenTelemetry's own definitions."""

import pytest
from hypothesis import given, settings
from support.siem_events import bare, hostile, of_kind, refused_token
from support.siem_readers import attributes, read_otlp
from support.world import EVENT_ID, ME, OTHER, published

from bridge.plugins import kind_of, read_format
from bridge.plugins.formats import find_format

OTLP = find_format("otlp").open(read_format("otlp"))
EVERY = [kind_of(each) for each in published().values()]
OURS = "azure.scheduledevents."


def said(cloudevent):
    """The resource's attributes and the one record."""
    [logs] = read_otlp(OTLP.encode(cloudevent)).resource_logs
    [scope] = logs.scope_logs
    [record] = scope.log_records
    assert scope.scope.name == "scheduled-events-bridge"
    return attributes(logs.resource.attributes), record


def test_a_transition_in_full():
    resource, record = said(of_kind("started"))
    assert resource["service.name"] == "scheduled-events-bridge"
    assert (resource["host.name"], resource["cloud.provider"]) == (ME, "azure")
    assert resource["cloud.account.id"] == "8d10da13-8125-4ba9-a717-bf7490507b3d"
    assert (resource["cloud.region"], resource["cloud.availability_zone"]) == ("westeurope", "1")
    assert record.time_unix_nano == record.observed_time_unix_nano == 1794744180 * 10**9
    assert (record.severity_number, record.severity_text) == (14, "WARN")
    assert record.event_name == "azure.scheduledevents.started"
    assert record.body.string_value.startswith("Azure has started to reboot FrontEnd_IN_0 and")
    found = attributes(record.attributes)
    assert found["cloudevents.event_id"] == of_kind("started").id
    assert found["event.code"] == "azse.reboot.started"
    assert found[f"{OURS}eventId"] == EVENT_ID
    assert found[f"{OURS}resources"] == [ME, OTHER]
    assert found[f"{OURS}durationInSeconds"] == -1
    assert found[f"{OURS}terminal"] is False


def test_an_audit_says_from_where_it_was_asked():
    resource, record = said(refused_token())
    found = attributes(record.attributes)
    assert (found["event.code"], found["client.address"]) == (
        "azse.audit.token.refused",
        "192.0.2.7",
    )
    assert (found[f"{OURS}outcome"], record.severity_number) == ("failure", 13)
    assert resource["host.id"] == "13f56399-bd52-4150-9748-7190aae1ff21"


@pytest.mark.parametrize("cloudevent", published().values(), ids=lambda each: each.type)
def test_the_whole_data_is_there(cloudevent):
    found = attributes(said(cloudevent)[1].attributes)
    told = {name.removeprefix(OURS) for name in found if name.startswith(OURS)}
    assert told == {name for name, value in cloudevent.data.items() if value is not None}


@pytest.mark.parametrize("kind", EVERY)
def test_no_field_of_the_data_is_needed(kind):
    assert said(bare(kind))[0]["host.name"] == ME


def test_numbers_keep_their_kind_and_those_too_large_become_text():
    extra = {"i": 2**63 - 1, "f": 0.5, "b": True, "n": None, "big": 10**30, "l": [1, None, "x"]}
    found = attributes(said(of_kind("scheduled", extra=extra))[1].attributes)[f"{OURS}extra"]
    assert found == {"i": 2**63 - 1, "f": 0.5, "b": True, "big": str(10**30), "l": [1, None, "x"]}
    assert isinstance(found["f"], float)


def without_null(value):
    if isinstance(value, dict):
        return {name: without_null(each) for name, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value


@pytest.mark.fuzz
@settings(max_examples=25)
@given(hostile())
def test_any_input_comes_back_as_written(cloudevent):
    found = attributes(said(cloudevent)[1].attributes)
    for name in ("description", "resources", "approver", "reason", "actor", "changes"):
        if cloudevent.data.get(name) is not None:
            whole = without_null(cloudevent.data[name])
            assert repr(found[f"{OURS}{name}"]).replace("'", "") == repr(whole).replace("'", "")
