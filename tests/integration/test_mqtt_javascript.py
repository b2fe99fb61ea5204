"""The MQTT binding as the JavaScript SDK of CloudEvents reads and writes it, over a real broker."""

import asyncio
import json
from typing import Any

import pytest
from support.cloudevents import batch
from support.javascript_sdk import javascript
from support.mosquitto_clients import mosquitto_pub, mosquitto_sub
from support.mqtt_stage import mqtt_sink, new_root

from bridge.plugins import Listening, Place
from bridge.policy.message import APPROVE, read
from sinks.mqtt import MqttApprovals, MqttSettings, approvals, sink

PLACE = Place({"vm_id": "vm-1", "vm_name": "web-1", "observer": "web-1"}, "plant")
MODES = ("structured", "binary")
EVENT = "602D9444-D2CD-49C7-8624-8643E7171297"


def seen(message: dict[str, Any]) -> dict[str, Any]:
    """As an MQTT client for JavaScript hands it on."""
    found = message["properties"]
    return {
        "contentType": found["content-type"],
        "userProperties": found.get("user-properties", {}),
        "payload": message["payload"],
    }


async def test_it_reads_what_we_publish_as_what_we_meant(mosquitto):
    events = batch(3)
    questions = []
    for mode in MODES:
        root = new_root()
        settings = MqttSettings.model_validate(mqtt_sink(mosquitto, root, mode=mode))
        async with mosquitto_sub(mosquitto, f"{root}/events/#") as found:
            async with sink.open(settings, PLACE) as send:
                assert await send(events) == [None] * 3
            await found.until(lambda got: len(got) == 3, "three messages")
        questions += [{"read": seen(message)} for message in found.messages]
    understood = await javascript("mqtt.cjs", questions)
    for mode, answers in zip(MODES, (understood[:3], understood[3:]), strict=True):
        by_id = {answer["id"]: answer for answer in answers}
        assert by_id.keys() == {event.id for event in events}
        for event in events:
            assert plain(by_id[event.id]) == expected(event.envelope, mode)


def plain(answer: dict[str, Any]) -> dict[str, Any]:
    """It leaves the data of binary messages as text, and writes times to the millisecond."""
    data = answer["data"]
    decoded = json.loads(data) if isinstance(data, str) else data
    return {**answer, "data": decoded, "time": answer["time"][:19]}


def expected(envelope: dict[str, Any], mode: str) -> dict[str, Any]:
    whole = {**envelope, "time": envelope["time"][:19]}
    if mode == "binary":
        # Content Type says it, and the SDK does not look there.
        del whole["datacontenttype"]
        whole["severitynumber"] = str(whole["severitynumber"])
    return whole


async def test_we_read_what_it_publishes_as_what_it_meant(mosquitto):
    data = {"eventId": EVENT, "approver": "orders", "decision": "hold", "reason": "not ready"}
    attributes = {"source": "/orders", "type": APPROVE, "data": data}
    attributes["datacontenttype"] = "application/json"
    questions = [{"write": {**attributes, "id": mode}, "mode": mode} for mode in MODES]
    written = await javascript("mqtt.cjs", questions)
    topic = f"{new_root()}/approvals"
    settings = MqttApprovals.model_validate(
        {"type": "mqtt", "host": mosquitto.host, "port": mosquitto.port, "topic": topic}
        | {"trust": "transport", "client_id": topic.replace("/", "-")}
    )
    asked = Listening("votes", {}, 0.0, lambda _: None)
    async with asyncio.timeout(20), approvals.open(settings, PLACE, asked) as deliveries:
        for message in written:
            user = [("user-property", *pair) for pair in message["userProperties"]]
            said = [("content-type", message["contentType"]), *user]
            await mosquitto_pub(mosquitto, topic, message["payload"].encode(), properties=said)
        for mode in MODES:
            delivery = await anext(deliveries)
            (approval,) = read(delivery.body, delivery.headers)
            assert (approval.key, approval.id) == (f"/orders\x1f{mode}", mode)
            assert approval.event_id == EVENT
            assert (approval.approver, approval.decision) == ("orders", "hold")
            assert approval.reason == "not ready"
            assert delivery.ack is not None
            await delivery.ack()


async def test_it_refuses_a_line_that_is_not_a_cloudevent():
    message = {"contentType": "application/json", "userProperties": {}, "payload": "{}"}
    with pytest.raises(AssertionError, match="No CloudEvent detected"):
        await javascript("mqtt.cjs", [{"read": message}])
