"""CloudEvents as HTTP requests, read back by the SDK as an independent oracle."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
import yaml
from cloudevents.core.bindings import http as sdk
from cloudevents.core.formats.json import JSONFormat
from support.cloudevents import HOSTILE, LARGEST, batch, make

from bridge.common import schemas as contract
from bridge.plugins import CloudEvent, Format, Rejected, read_format
from bridge.plugins.formats import find_format
from sinks.webhook.binding import LARGEST_BATCH, HttpMessage, alone, messages

CLOUDEVENTS = find_format("cloudevents").open(read_format("cloudevents"))


def made(sent: Sequence[CloudEvent], mode: Any, form: Format = CLOUDEVENTS, size: int = 50):
    found, unsaid = messages(sent, mode, form, size)
    assert unsaid == {}
    return found


def read(message: HttpMessage) -> dict:
    event = sdk.from_http(sdk.HTTPMessage(message.headers, message.body), JSONFormat())
    found = dict(event.get_attributes())
    assert isinstance(found["time"], datetime)
    found["time"] = found["time"].isoformat().replace("+00:00", "Z")
    found["severitynumber"] = int(found["severitynumber"])
    return {**found, "data": event.get_data()}


@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_the_sdk_reads_back_what_was_sent(mode):
    sent = [make(description=HOSTILE)]
    [message] = made(sent, mode)
    assert read(message) == sent[0].envelope
    assert (message.id, message.places) == (sent[0].id, (0,))


def test_structured_is_the_body_that_every_transport_carries():
    [sent] = batch(1)
    [message] = made([sent], "structured")
    assert message.body == sent.body
    assert message.headers == {"Content-Type": "application/cloudevents+json; charset=utf-8"}


def test_binary_puts_attributes_into_headers_and_data_into_the_body():
    [sent] = batch(1)
    [message] = made([sent], "binary")
    attributes = sent.attributes
    assert message.headers["content-type"] == attributes.pop("datacontenttype")
    assert {name: value for name, value in message.headers.items() if name != "content-type"} == {
        f"ce-{name}": str(value) for name, value in attributes.items()
    }
    assert json.loads(message.body) == sent.data


def test_what_could_break_out_of_a_header_is_percent_encoded():
    envelope = {**make().envelope, "subject": 'a b"%é\r\nX-Evil: 1\x00\U0001f692~:/'}
    sent = CloudEvent.decode(json.dumps(envelope).encode())
    [message] = made([sent], "binary")
    assert message.headers["ce-subject"] == ("a%20b%22%25%C3%A9%0D%0AX-Evil:%201%00%F0%9F%9A%92~:/")
    assert all(value.isascii() and value.isprintable() for value in message.headers.values())


def test_a_batch_is_an_array_of_bounded_count():
    sent = batch(7)
    found = made(sent, "batch", size=3)
    assert [json.loads(message.body) for message in found] == [
        [each.envelope for each in part] for part in (sent[:3], sent[3:6], sent[6:])
    ]
    assert [message.places for message in found] == [(0, 1, 2), (3, 4, 5), (6,)]
    assert {message.headers["Content-Type"] for message in found} == {
        "application/cloudevents-batch+json; charset=utf-8"
    }


def test_a_batch_is_of_bounded_size():
    found = made(batch(40, size=LARGEST), "batch", size=500)
    assert all(len(message.body) <= LARGEST_BATCH + 1 for message in found)
    assert [place for message in found for place in message.places] == list(range(40))
    assert len(found) == 3


def test_a_batch_can_be_taken_apart():
    sent = batch(4)
    [_, message] = made(sent, "batch", size=2)
    assert [(part.places, json.loads(part.body)) for part in alone(message, sent)] == [
        ((2,), [sent[2].envelope]),
        ((3,), [sent[3].envelope]),
    ]


def test_a_format_is_sent_as_it_is_with_its_own_type():
    def encode(cloudevent: CloudEvent) -> bytes:
        if cloudevent.id == sent[1].id:
            raise Rejected("no words for it")
        return cloudevent.key.encode()

    sent = batch(3)
    found, unsaid = messages(sent, "structured", Format(encode, "text/plain"), 50)
    assert [(each.body, each.places) for each in found] == [
        (sent[0].key.encode(), (0,)),
        (sent[2].key.encode(), (2,)),
    ]
    assert found[0].headers == {"Content-Type": "text/plain"}
    assert {place: str(why) for place, why in unsaid.items()} == {1: "no words for it"}


def test_asyncapi_has_the_same_messages_for_webhooks_as_for_all():
    channels = yaml.safe_load(contract.read("asyncapi"))["channels"]
    assert channels["webhookEvents"]["messages"] == channels["events"]["messages"]
