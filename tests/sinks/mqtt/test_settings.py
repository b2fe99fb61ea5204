"""The keys of the MQTT sink: what they mean, and one clear sentence for each mistake."""

import re
from functools import partial
from pathlib import Path

import pytest
from support.sink_settings import complaint
from support.sink_settings import mqtt as configured

from bridge.config import load
from bridge.plugins import TLS, Place, SinkSettings
from sinks.mqtt import MqttSettings
from sinks.mqtt.settings import Connection, name_client

PLACE = Place({"vm_id": "id/1", "vm_name": "web-1", "observer": "web~1"}, sink="plant")
LOGIN = {"username": "ann", "password": "s3cret"}


refused = partial(complaint, configured)


def test_the_defaults_are_those_of_the_contract():
    made = configured()
    assert (made.topic, made.mode, made.qos) == (
        "azure/scheduled-events/events/{subject}",
        "structured",
        1,
    )
    assert (made.version, made.keep_alive, made.transport) == ("5", 15, "tcp")
    assert (made.expiry, made.retain_state, made.response_topic) == (False, False, None)
    assert made.birth_topic == "azure/scheduled-events/bridges/{observer}"


@pytest.mark.parametrize(
    ("keys", "port"),
    [
        ({}, 1883),
        ({"tls": True}, 8883),
        ({"transport": "websockets"}, 80),
        ({"transport": "websockets", "tls": True}, 443),
        ({"port": 9001, "tls": True}, 9001),
    ],
)
def test_the_port_follows_from_the_way_there(keys, port):
    assert configured(**keys).address == ("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("mqtt.example", "mqtt.example:1883"),
        (" mqtt-1.example ", "mqtt-1.example:1883"),
        ("[::1]", "[::1]:1883"),
        ("::1", "[::1]:1883"),
    ],
)
def test_a_host_is_a_name_or_an_address(host, server):
    assert configured(host=host).server == server


@pytest.mark.parametrize("host", ["mqtt://a", "a:1883", "a/b", "a b", "ä", "tcp://a:1"])
def test_what_is_not_a_host_is_refused(host):
    assert "is not a host; write its name or address, without the port" in refused(host=host)


@pytest.mark.parametrize("written", ["5", 5, 5.0, "5.0"], ids=repr)
def test_the_version_may_be_written_as_a_number(written):
    assert configured(version=written).version == "5"


@pytest.mark.parametrize("written", ["3.1.1", "5"])
def test_the_version_may_stand_in_the_file_without_quotes(tmp_path, written):
    file = tmp_path / "config.yaml"
    file.write_text(f"sinks: {{plant: {{type: mqtt, host: 127.0.0.1, version: {written}}}}}")
    made = load(file, {}).sinks["plant"]
    assert isinstance(made, MqttSettings)
    assert made.version == written


@pytest.mark.parametrize("written", ["4", 3.1, True, None, "3.1"], ids=repr)
def test_other_versions_are_refused(written):
    assert "'5' or '3.1.1'" in refused(version=written)


@pytest.mark.parametrize("written", [2, "2"], ids=["number", "text"])
def test_qos_2_is_refused_with_the_reason(written):
    said = refused(qos=written)
    assert (
        "2 is refused: the library reports success for QoS 2 messages that the server rejected"
        in said
    )
    assert "use 1" in said
    assert "0 or 1" in refused(qos=3)


OLD = {"version": "3.1.1"}


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({**OLD, "mode": "binary"}, "mode: binary needs version: 5"),
        ({**OLD, "expiry": True}, "expiry needs version: 5"),
        ({**OLD, "response_topic": "a"}, "response_topic needs version: 5"),
        ({"mode": "binary", "format": "cloudevents"}, "format needs mode: structured"),
        ({"attribute_prefix": "ce-"}, "attribute_prefix needs mode: binary"),
        ({"attribute_prefix": "x-", "mode": "binary"}, "'' or 'ce-'"),
        ({"retain_state": True, "topic": "a/b"}, "retain_state needs {subject} in topic"),
        ({"password": "s3cret"}, "password needs username"),
        ({"path": "/mqtt"}, "path and headers are for transport: websockets"),
        ({"headers": {"a": "s3cret"}}, "path and headers are for transport: websockets"),
        (
            {"transport": "websockets", "path": "mqtt"},
            "'mqtt' is not a path that starts with /, such as /mqtt",
        ),
        ({"transport": "websockets", "path": "/a\r\nb"}, "is not a path"),
        ({"transport": "websockets", "headers": {"a:": "b"}}, "is not a header name"),
        ({"transport": "quic"}, "'tcp' or 'websockets'"),
        ({"alpn": ["mqtt"]}, "alpn needs tls"),
        ({"alpn": [""], "tls": True}, "is not a protocol name"),
        ({"keep_alive": "0s"}, "greater than or equal to 1"),
        ({"keep_alive": "2d"}, "less than or equal to 65535"),
        ({"port": 0}, "greater than or equal to 1"),
        ({"client_id": ""}, "1 to 1024 printable ASCII characters"),
        ({"client_id": "ä"}, "1 to 1024 printable ASCII characters"),
        ({"client_id": "{subject}"}, "{subject} is unknown; choose from observer"),
        ({"topic": ""}, "a topic must not be empty"),
        ({"topic": "a/+/b"}, "contains a wildcard (+ or #)"),
        ({"topic": "a/#"}, "contains a wildcard (+ or #)"),
        ({"topic": "$SYS/a"}, "begins with $, which is reserved for the server"),
        ({"topic": "a\x00"}, "a topic must not contain control characters"),
        ({"topic": "x" * 65000}, "a topic has at most 64511 bytes"),
        ({"topic": "{nonsense}"}, "{nonsense} is unknown; choose from subject, observer"),
        ({"topic": "a/{subject"}, "'a/{subject' has unbalanced braces"),
        ({"client_id": "seb-vm_id}"}, "'seb-vm_id}' has unbalanced braces"),
        ({"birth_topic": "a/{subject}"}, "{subject} is unknown; choose from observer"),
        ({"response_topic": "a/+"}, "contains a wildcard"),
        ({"topic": "a/{subject}", "birth_topic": "a/{vm_id}"}, "must not be the same"),
        ({"topic": "a/{subject}", "response_topic": "a/b"}, "must not be the same"),
    ],
)
def test_each_mistake_is_explained_in_one_sentence(keys, said):
    assert said in refused(**keys)


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        (LOGIN, "password would go to far.example in clear text"),
        ({"transport": "websockets", "headers": {"authorization": "s3cret"}}, "headers would go"),
    ],
)
def test_secrets_do_not_leave_the_machine_in_clear_text_unless_that_is_meant(keys, what):
    assert what in refused(host="far.example", **keys)
    assert configured(host="far.example", tls=True, **keys)
    assert configured(host="far.example", insecure=True, **keys)
    assert configured(**keys)


def test_the_client_is_named_after_the_vm_and_the_sink():
    assert name_client(None, PLACE, "sink") == "seb-id_1-sink-plant"
    assert name_client("x-{vm_name}", PLACE, "sink") == "x-web-1"


def test_the_client_of_a_vm_without_a_name_has_a_random_id_and_keeps_it():
    nameless = name_client(None, Place(sink="plant"), "sink")
    assert nameless == name_client(None, Place(sink="plant"), "sink")
    assert nameless.startswith("seb-")
    assert nameless != "seb-sink-plant"


def test_it_says_what_it_will_do_and_no_secret():
    made = configured(tls={"certificate": "c.pem"}, retain_state=True, **LOGIN)
    assert made.describe() == (
        "publishes CloudEvents in structured mode to MQTT topic "
        "azure/scheduled-events/events/{subject} with QoS 1 at 127.0.0.1:8883 by MQTT 5 "
        "over TLS with a client certificate, as user ann; retains what is pending"
    )
    assert configured(response_topic="a/b").describe().endswith("; asks for replies on a/b")
    wss = configured(transport="websockets", tls={"insecure": True}).describe()
    assert wss.endswith("by MQTT 5 in WebSockets (/mqtt) over TLS without verification")
    assert "s3cret" not in repr(made) + made.describe() + made.model_dump_json()


def test_the_settings_are_those_of_every_sink_and_the_connection_has_no_client_id():
    assert issubclass(MqttSettings, SinkSettings)
    assert MqttSettings.__mro__[1] is Connection
    assert "client_id" not in Connection.model_fields


GUIDE = (Path(__file__).parents[3] / "docs/sinks/mqtt.md").read_text(encoding="utf-8")


def test_the_guide_names_every_key():
    own = set(MqttSettings.model_fields) - set(SinkSettings.model_fields)
    keys = "\n".join(line for line in GUIDE.splitlines() if line.startswith("| `"))
    assert [key for key in sorted(own | set(TLS.model_fields)) if f"`{key}`" not in keys] == []


def test_the_examples_of_the_guide_for_the_sink_are_good_configurations(tmp_path):
    examples = re.findall(r"```yaml\n(.*?)```", GUIDE.partition("## Approvals")[0], re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        file = tmp_path / "config.yaml"
        file.write_text(example)
        assert {sink.type for sink in load(file, {}).sinks.values()} == {"mqtt"}
