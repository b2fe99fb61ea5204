"""CloudEvents as MQTT messages, without a server: modes, properties, what is retained and cleared."""

import json
from datetime import UTC, datetime
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from cloudevents.core.bindings import kafka
from cloudevents.core.formats.json import JSONFormat
from hypothesis import given, settings
from support.any_message import as_sdk, cloudevents
from support.cloudevents import HOSTILE, STATE, make
from support.sink_settings import mqtt as configured

from bridge.plugins import CloudEvent, Format, Place, Rejected
from sinks.mqtt.binding import Binding, Presence

PLACE = Place({"vm_id": "vm-1", "observer": "web-1"}, sink="plant")
NOT_BEFORE = datetime(2026, 11, 15, 18, 29, 47, tzinfo=UTC).timestamp()
NOW = NOT_BEFORE - 900


def news(kind: str, **data) -> CloudEvent:
    made = make(1, key="A-1", **data)
    envelope = {**made.envelope, "type": f"azure.scheduledevents.{kind}.v1"}
    return CloudEvent.decode(json.dumps(envelope).encode())


def messages(cloudevent: CloudEvent, response: str | None = None, **keys):
    return Binding(configured(**keys), PLACE, None, response).messages(cloudevent, NOW)


def test_a_structured_message_is_the_body_itself():
    cloudevent = make(1, key="A-1", description=HOSTILE)
    [message] = messages(cloudevent)
    assert message.topic == "azure/scheduled-events/events/A-1"
    assert message.payload == cloudevent.body
    assert (message.qos, message.retain) == (1, False)
    assert message.properties == {
        "ContentType": "application/cloudevents+json; charset=utf-8",
        "PayloadFormatIndicator": 1,
    }


def test_a_binary_message_has_attributes_as_user_properties_and_data_as_payload():
    cloudevent = make(1, key="A-1", description=HOSTILE)
    [message] = messages(cloudevent, mode="binary")
    assert json.loads(message.payload) == cloudevent.data
    assert message.properties["ContentType"] == "application/json"
    named = message.properties["UserProperty"]
    assert len(dict(named)) == len(named)
    assert dict(named) == {
        name: str(value)
        for name, value in cloudevent.attributes.items()
        if name != "datacontenttype"
    }


def test_attributes_may_have_the_prefix_that_the_go_sdk_looks_for():
    cloudevent = make(1, key="A-1")
    [message] = messages(cloudevent, mode="binary", attribute_prefix="ce-")
    named = dict(message.properties["UserProperty"])
    assert named.pop("Content-Type") == message.properties["ContentType"] == "application/json"
    assert (named["ce-id"], named["ce-specversion"]) == (cloudevent.id, "1.0")
    assert all(name.startswith("ce-") for name in named)


def test_a_subject_cannot_leave_its_level_of_the_topic():
    [message] = messages(make(1, key="a/+/#$"))
    assert message.topic == "azure/scheduled-events/events/a_____"


KINDS = (
    "scheduled",
    "updated",
    "started",
    "completed",
    "canceled",
    "approval.granted",
    "bridge.audited",
)


@pytest.mark.parametrize("kind", KINDS)
def test_only_announcements_expire_an_hour_after_they_are_due(kind):
    [message] = messages(news(kind), expiry=True)
    expected = 900 + 3600 if kind in {"scheduled", "updated"} else None
    assert message.properties.get("MessageExpiryInterval") == expected
    [kept] = messages(news(kind))
    assert "MessageExpiryInterval" not in kept.properties


@pytest.mark.parametrize(
    ("not_before", "seconds"),
    [(None, None), ("2026-11-15T10:00:00Z", 1)],
    ids=["unknown", "long ago"],
)
def test_an_announcement_that_is_late_or_has_no_time(not_before, seconds):
    [message] = messages(news("scheduled", notBefore=not_before), expiry=True)
    assert message.properties.get("MessageExpiryInterval") == seconds


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_retained_while_it_is_pending_and_cleared_when_it_has_ended(kind):
    said, *clearing = messages(news(kind), retain_state=True)
    assert said.retain is (kind in {"scheduled", "updated", "started"})
    assert [(each.topic, each.payload, each.retain) for each in clearing] == (
        [(said.topic, b"", True)] if kind in {"completed", "canceled"} else []
    )
    assert [each.retain for each in messages(news(kind))] == [False]


def test_the_state_of_a_vm_that_will_be_deleted_expires_because_its_end_may_go_unreported():
    last = news("started", terminal=True)
    assert messages(last, retain_state=True)[0].properties["MessageExpiryInterval"] == 3600
    assert "MessageExpiryInterval" not in messages(last)[0].properties
    assert messages(last, retain_state=True, version="3.1.1")[0].retain


@pytest.mark.parametrize("kind", KINDS)
def test_what_can_be_approved_says_where(kind):
    approvable = kind in {"scheduled", "updated"}
    [message] = messages(news(kind, approvable=approvable), "approvals/x")
    told = (message.properties.get("ResponseTopic"), message.properties.get("CorrelationData"))
    assert told == (("approvals/x", f"A-1/{STATE}".encode()) if approvable else (None, None))


def test_a_format_has_its_own_words_and_content_type():
    def encode(cloudevent: CloudEvent) -> bytes:
        if cloudevent.key == "A-2":
            raise Rejected("no words for it")
        return b"<13>news"

    binding = Binding(configured(), PLACE, Format(encode, "application/x-cef"))
    [message] = binding.messages(make(1, key="A-1"), NOW)
    assert message.payload == b"<13>news"
    assert message.properties == {"ContentType": "application/x-cef", "PayloadFormatIndicator": 0}
    with pytest.raises(Rejected, match="no words"):
        binding.messages(make(1, key="A-2"), NOW)


def test_presence_says_who_and_since_when():
    presence = Presence.of(configured(), PLACE, "me")
    assert presence is not None
    now = datetime(2026, 11, 15, 18, 0, 0, 5, tzinfo=UTC)
    who = {"observer": "web-1", "vmId": "vm-1", "client": "me"}
    birth = presence.online(now)
    assert (birth.topic, birth.retain) == ("azure/scheduled-events/bridges/web-1", True)
    assert json.loads(birth.payload) == {"status": "online", **who, "since": "2026-11-15T18:00:00Z"}
    stopped = json.loads(presence.offline(now).payload)
    assert stopped == {
        "status": "offline",
        **who,
        "since": "2026-11-15T18:00:00Z",
        "reason": "stopped",
    }
    lost = json.loads(presence.will().payload)
    assert lost == {"status": "offline", **who, "since": None, "reason": "lost"}


def test_there_is_no_presence_where_it_is_not_wanted_or_the_vm_has_no_name():
    assert Presence.of(configured(birth_topic=None), PLACE, "me") is None
    assert Presence.of(configured(), Place(), "me") is None


ASYNCAPI = yaml.safe_load(
    (Path(__file__).parents[3] / "schemas/asyncapi.yaml").read_text(encoding="utf-8")
)


def test_asyncapi_has_our_topics_and_everything_that_goes_there():
    channels = ASYNCAPI["channels"]
    assert channels["mqttEvents"]["address"] == configured().topic
    assert channels["mqttEvents"]["messages"] == channels["events"]["messages"]
    assert channels["mqttBridges"]["address"] == configured().birth_topic


@pytest.mark.parametrize("which", ["online", "offline", "will"])
def test_presence_is_what_asyncapi_says(which):
    schema = ASYNCAPI["channels"]["mqttBridges"]["messages"]["presence"]["payload"]
    check = jsonschema_rs.validator_for(schema, validate_formats=True)
    presence = Presence.of(configured(), PLACE, "me")
    assert presence is not None
    said = json.loads(getattr(presence, which)().payload)
    check.validate(said)
    assert said.keys() <= schema["properties"].keys()
    assert not check.is_valid({**said, "status": "asleep"})


@settings(deadline=None)
@given(cloudevent=cloudevents())
def test_every_binary_message_has_the_attributes_and_bytes_that_the_sdk_writes(
    cloudevent: CloudEvent,
):
    """The SDK has no MQTT binding: it differs from Kafka's only in the names."""
    expected = kafka.to_binary(as_sdk(cloudevent), JSONFormat())
    named = {name.removeprefix("ce_"): value.decode() for name, value in expected.headers.items()}
    message = messages(cloudevent, mode="binary")[0]
    assert message.payload == expected.value
    assert message.properties["ContentType"] == named.pop("content-type")
    assert message.properties["UserProperty"] == list(named.items())


@settings(deadline=None)
@given(cloudevent=cloudevents())
def test_every_structured_message_has_the_bytes_that_the_sdk_writes(cloudevent: CloudEvent):
    assert messages(cloudevent)[0].payload == JSONFormat().write(as_sdk(cloudevent))
