"""The keys of the Kafka sink, its topics, and its guide."""

import re
from functools import partial
from pathlib import Path

import pytest
from pydantic import ValidationError
from support.cloudevents import make
from support.sink_settings import complaint
from support.sink_settings import kafka as configured

from bridge.config import load
from bridge.plugins import TLS, ManagedIdentity, OAuth, Place, SinkSettings, Unavailable
from sinks.kafka import KafkaSettings, settings
from sinks.kafka.settings import Topics

PLACE = Place({"vm_id": "id/1", "vm_name": "web-1", "observer": "web~1(a)"}, sink="bus")
PASSWORD = {"username": "ann", "password": "s3cret"}
IDENTITY = {"managed_identity": {"resource": "https://a.b"}}
OAUTH = {"token_url": "https://login.example/t", "client_id": "a", "client_secret": "b"}


refused = partial(complaint, configured)


def test_the_defaults_are_those_of_the_contract():
    made = configured()
    assert (made.topic, made.mode) == ("azure.scheduled-events", "binary")
    assert (made.compression, made.keep_connected, made.tls, made.sasl) == (
        "none",
        True,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("kafka-1.example", ("kafka-1.example", 9092)),
        ("kafka-1.example:9093", ("kafka-1.example", 9093)),
        (" [::1]:1 ", ("::1", 1)),
        ("[fe80::1]", ("fe80::1", 9092)),
    ],
)
def test_a_server_is_a_host_and_a_port(given, meant):
    assert configured(bootstrap_servers=[given]).servers == [meant]


@pytest.mark.parametrize("wrong", ["", "a:0", "a:65536", "a:b", "http://a:1", "a b", "::1", "a,b"])
def test_what_is_not_a_server_is_refused(wrong):
    assert "is not a broker's address; write HOST:PORT" in refused(bootstrap_servers=[wrong])


def test_some_server_is_needed():
    assert "name at least one broker" in refused(bootstrap_servers=[])
    with pytest.raises(ValidationError, match="bootstrap_servers"):
        KafkaSettings.model_validate({"type": "kafka"})


@pytest.mark.parametrize(
    ("sasl", "why"),
    [
        ({"mechanism": "PLAIN"}, "PLAIN takes username and password"),
        ({"mechanism": "PLAIN", "username": "a"}, "PLAIN takes username and password"),
        ({"mechanism": "SCRAM-SHA-256", "password": "a"}, "SCRAM-SHA-256 takes username"),
        ({"mechanism": "PLAIN", **PASSWORD, **IDENTITY}, "and nothing else"),
        ({"mechanism": "PLAIN", **PASSWORD, "extensions": {"a": "b"}}, "and nothing else"),
        ({"mechanism": "OAUTHBEARER"}, "either oauth or managed_identity"),
        ({"mechanism": "OAUTHBEARER", **IDENTITY, "oauth": OAUTH}, "either oauth or"),
        ({"mechanism": "OAUTHBEARER", **IDENTITY, "username": "a"}, "and no password"),
        ({"mechanism": "OAUTHBEARER", **IDENTITY, "extensions": {"a b": "c"}}, "letters only"),
        ({"mechanism": "OAUTHBEARER", **IDENTITY, "extensions": {"a": "\x01"}}, "letters only"),
        ({"mechanism": "GSSAPI"}, "mechanism"),
    ],
)
def test_a_mechanism_takes_what_it_needs_and_no_more(sasl, why):
    assert why in refused(sasl=sasl)


@pytest.mark.parametrize(
    ("sasl", "what"),
    [
        ({"mechanism": "PLAIN", **PASSWORD}, "the password would go to far.example in clear text"),
        ({"mechanism": "OAUTHBEARER", **IDENTITY}, "the token would go to far.example in clear"),
    ],
)
def test_secrets_do_not_leave_the_machine_in_clear_text_unless_that_is_meant(sasl, what):
    far = {"bootstrap_servers": ["127.0.0.1:1", "far.example:9092"], "sasl": sasl}
    assert what in refused(**far)
    assert configured(**far, tls=True)
    assert configured(**far, insecure=True)
    assert configured(sasl=sasl)


def test_scram_never_sends_its_password():
    sasl = {"mechanism": "SCRAM-SHA-512", **PASSWORD}
    assert configured(bootstrap_servers=["far.example"], sasl=sasl)


def test_a_compression_that_is_not_installed_is_refused(monkeypatch):
    assert configured(compression="zstd").compression == "zstd"
    monkeypatch.setattr(settings, "_CODECS", {"zstd": lambda: False})
    assert "zstd needs the package cramjam" in refused(compression="zstd")
    assert configured(compression="gzip").compression == "gzip"


def test_it_says_what_it_will_do_and_no_secret():
    sasl = {"mechanism": "PLAIN", **PASSWORD}
    made = configured(tls={"certificate": "c.pem"}, sasl=sasl)
    assert made.describe() == (
        "writes CloudEvents in binary mode to Kafka topic azure.scheduled-events at "
        "127.0.0.1:9092 over TLS with a client certificate, with SASL PLAIN"
    )
    assert "without verification" in configured(tls={"insecure": True}).describe()
    assert configured().describe().endswith("without TLS")
    assert "s3cret" not in repr(made) + made.describe() + made.model_dump_json()


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"state_topic": "s.{event_type}"}, "{event_type} is not allowed"),
        ({"state_topic": "a b"}, "'a b' is not a topic"),
        ({"state_topic": "s", "format": "slack"}, "state_topic contains CloudEvents"),
        ({"state_topic": "s", "only": {"types": ["*.started.*"]}}, "needs all transitions"),
        ({"state_topic": "s", "only": {"event_types": ["Reboot"]}}, "needs all transitions"),
        ({"state_topic": "s", "topic": "s"}, "topic and state_topic must not be the same"),
        ({"state_topic": "s.reboot", "topic": "s.{event_type}"}, "must not be the same"),
    ],
)
def test_a_state_topic_that_could_not_be_whole_is_refused(keys, why):
    assert why in refused(**keys)


def test_only_with_a_state_topic_the_sink_keeps_the_state():
    made = configured(state_topic="state.{vm_name}")
    assert "and what is pending to state.{vm_name}, at" in made.describe()
    assert (made.keeps_state, configured().keeps_state) == (True, False)


def test_with_a_format_there_is_no_mode():
    made = configured(format="slack")
    assert made.describe().startswith("writes CloudEvents as slack to Kafka topic azure")
    assert "mode and format exclude each other" in refused(format="slack", mode="binary")
    assert "mode and format exclude each other" in refused(format="slack", mode="structured")


@pytest.mark.parametrize(
    ("place", "meant"),
    [
        (PLACE, "seb-id_1-sink-bus"),
        (Place({"vm_name": "web-1"}, sink="bus"), "seb-web-1-sink-bus"),
        (Place(sink="bus"), "seb-sink-bus"),
    ],
)
def test_the_client_has_a_name_also_while_the_vm_has_none(place, meant):
    assert configured().name_client(place, "sink") == meant


def test_the_client_may_be_named():
    assert configured(client_id="x-{vm_name}").name_client(PLACE, "sink") == "x-web-1"
    assert "{subject} is unknown" in refused(client_id="{subject}")


@pytest.mark.parametrize(
    "topic", ["a", "A.b_c-9", "x" * 249, "{vm_name}", "se-{event_type}.{location}"]
)
def test_topics_that_kafka_takes(topic):
    assert configured(topic=topic).topic == topic


@pytest.mark.parametrize(
    "topic", ["", "a/b", "a b", "ä", ".", "..", "x" * 250, "{", "a{b}c", "a\n"]
)
def test_topics_that_kafka_does_not_take_are_refused(topic):
    assert "topic" in refused(topic=topic)


def test_a_topic_is_not_made_from_what_strangers_choose():
    assert "{subject} is unknown; choose from event_type" in refused(topic="{subject}")


def test_an_unknown_name_is_waited_for():
    with pytest.raises(Unavailable, match=r"\{location\} is not known yet"):
        Topics.fill("{location}", PLACE)


def test_names_become_legal_in_topics():
    assert Topics.fill("{observer}", PLACE).names == ["web_1_a_"]
    assert Topics.fill("{vm_name}", Place({"vm_name": ".."})).names == ["_"]
    assert Topics.fill("x{vm_name}", Place({"vm_name": "y" * 300})).names == ["x" + "y" * 248]


@pytest.mark.parametrize(
    ("kind", "meant"),
    [
        ("Reboot", "reboot"),
        ("Preempt", "preempt"),
        ("../x", "other"),
        ("New", "other"),
        (None, "other"),
    ],
)
def test_a_topic_may_tell_event_types_apart_and_only_those_that_are_known(kind, meant):
    topics = Topics.fill("se.{event_type}", PLACE)
    assert topics.of(make(eventType=kind)) == f"se.{meant}"
    assert len(topics.names) == 6


def test_one_topic_needs_no_look_at_the_data():
    broken = make().__class__("id", "type", "key", b"not JSON")
    assert Topics.fill("one", PLACE).of(broken) == "one"


GUIDE = (Path(__file__).parents[3] / "docs/sinks/kafka.md").read_text(encoding="utf-8")


def test_the_guide_names_every_key():
    own = set(KafkaSettings.model_fields) - set(SinkSettings.model_fields)
    nested = set(TLS.model_fields) | set(settings.Sasl.model_fields)
    nested |= set(OAuth.model_fields) | set(ManagedIdentity.model_fields)
    assert [key for key in sorted(own) if f"| `{key}` |" not in GUIDE] == []
    assert [key for key in sorted(nested) if f"`{key}`" not in GUIDE] == []


def test_the_examples_of_the_guide_are_good_configurations(tmp_path):
    examples = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    assert len(examples) == 6
    for example in examples:
        file = tmp_path / "config.yaml"
        file.write_text(example)
        assert {sink.type for sink in load(file, {}).sinks.values()} == {"kafka"}
