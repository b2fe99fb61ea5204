"""CloudEvents as Kafka records, read back by the SDK as an independent oracle."""

import json
from dataclasses import replace
from datetime import datetime

import pytest
from cloudevents.core.bindings import kafka as sdk
from cloudevents.core.formats.json import JSONFormat
from hypothesis import given, settings
from support.any_message import as_sdk, cloudevents
from support.cloudevents import HOSTILE, LARGEST, make
from support.sink_settings import kafka as configured

from bridge.plugins import CloudEvent, PresentState, open_format
from sinks.kafka.binding import encode, encode_as, states


def test_a_binary_record_has_attributes_in_headers_and_data_as_value():
    cloudevent = make(1, key="A-1")
    record = encode(cloudevent, "binary")
    headers = dict(record.headers)
    assert record.key == b"A-1"
    assert json.loads(record.value or b"") == cloudevent.data
    assert len(headers) == len(record.headers)
    assert headers.pop("content-type") == b"application/json"
    expected = {
        f"ce_{name}": str(value).encode()
        for name, value in cloudevent.attributes.items()
        if name != "datacontenttype"
    }
    assert headers == expected
    assert headers["ce_severitynumber"] == b"13"
    assert headers["ce_time"] == b"2026-11-15T18:14:48Z"


def test_a_record_in_another_format_has_its_bytes_and_content_type_and_the_usual_key():
    cloudevent, form = make(key="A-1"), open_format(configured(format="slack"))
    record = encode_as(cloudevent, form)
    assert (record.key, record.value) == (b"A-1", form.encode(cloudevent))
    assert record.headers == [("content-type", b"application/json")]


def test_a_structured_record_is_the_body_itself():
    cloudevent = make(1, key="A-1")
    record = encode(cloudevent, "structured")
    assert (record.key, record.value) == (b"A-1", cloudevent.body)
    assert record.headers == [("content-type", b"application/cloudevents+json; charset=UTF-8")]


@pytest.mark.parametrize("mode", ["binary", "structured"])
@pytest.mark.parametrize("data", [{}, {"description": HOSTILE}], ids=["plain", "hostile"])
def test_the_sdk_reads_what_we_write(mode, data):
    cloudevent = make(1, **data)
    record = encode(cloudevent, mode)
    message = sdk.KafkaMessage(dict(record.headers), record.key, record.value or b"")
    read = (sdk.from_binary if mode == "binary" else sdk.from_structured)(message, JSONFormat())
    attributes = dict(cloudevent.attributes)
    attributes["time"] = datetime.fromisoformat(attributes["time"])
    got = {name: value for name, value in read.get_attributes().items() if value is not None}
    got["severitynumber"] = int(got["severitynumber"])
    assert got == attributes
    assert read.get_data() == cloudevent.data


@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_two_records_do_not_mix(mode):
    first, second = make(1), make(2)
    one, _ = encode(first, mode), encode(second, mode)
    assert first.id.encode() in (one.value or b"") + b"".join(value for _, value in one.headers)
    assert encode(first, mode) == one


def test_the_size_of_a_record_is_about_right():
    record = encode(make(size=LARGEST), "structured")
    assert LARGEST < record.size < LARGEST + 400


@settings(deadline=None)
@given(cloudevent=cloudevents())
def test_every_record_has_the_bytes_that_the_sdk_writes(cloudevent: CloudEvent):
    binary, structured = encode(cloudevent, "binary"), encode(cloudevent, "structured")
    expected = sdk.to_binary(as_sdk(cloudevent), JSONFormat())
    assert (binary.key.decode(), binary.value) == (expected.key, expected.value)
    assert binary.headers == list(expected.headers.items())
    assert structured.value == sdk.to_structured(as_sdk(cloudevent), JSONFormat()).value


@pytest.mark.parametrize("data", [{}, {"description": HOSTILE}], ids=["plain", "hostile"])
def test_a_body_that_others_wrote_becomes_the_record_that_the_sdk_writes(data):
    cloudevent = make(1, **data)
    expected = sdk.to_binary(as_sdk(cloudevent), JSONFormat())
    record = encode(cloudevent, "binary")
    assert (record.value, record.headers) == (expected.value, list(expected.headers.items()))


def test_the_present_state_is_under_the_event_and_its_observer_and_an_end_has_no_value():
    latest = make(2, key="A-1")
    pending = (PresentState("A-1", latest), PresentState("B-2", None))
    told = replace(make(1, key="vm"), present=pending)
    there, over = states(told, "structured")
    observer = told.attributes["observer"]
    assert there == encode(latest, "structured")._replace(key=f"A-1/{observer}".encode())
    assert over.size < there.size
    assert over == (f"B-2/{observer}".encode(), None, [])
    assert states(latest, "binary") == []
