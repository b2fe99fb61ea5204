"""The Kafka sink without a broker: its keys, its topics, its records, its words for errors."""

import asyncio
import inspect
import json
import logging
import re
import ssl
from datetime import datetime
from pathlib import Path
from socket import gaierror

import pytest
from aiokafka import AIOKafkaProducer, errors
from cloudevents.core.bindings import kafka as sdk
from cloudevents.core.formats.json import JSONFormat
from pydantic import ValidationError
from support.cloudevents import HOSTILE, LARGEST, make

from bridge.config import load
from bridge.plugins import (
    TLS,
    ManagedIdentity,
    OAuth,
    Place,
    Rejected,
    SinkSettings,
    Unavailable,
    open_format,
)
from sinks.kafka import KafkaSettings, settings
from sinks.kafka.binding import encode, encode_as
from sinks.kafka.check import AskTopics, may_write
from sinks.kafka.connection import log_in
from sinks.kafka.errors import InvalidRecordError, Lost, verdict, why_not_connected
from sinks.kafka.settings import Topics

PLACE = Place({"vm_id": "id/1", "vm_name": "web-1", "observer": "web~1(a)"}, sink="bus")
PASSWORD = {"username": "ann", "password": "s3cret"}
IDENTITY = {"managed_identity": {"resource": "https://a.b"}}
OAUTH = {"token_url": "https://login.example/t", "client_id": "a", "client_secret": "b"}


def configured(**keys) -> KafkaSettings:
    given = {"type": "kafka", "bootstrap_servers": ["127.0.0.1:9092"]}
    return KafkaSettings.model_validate(given | keys)


def refused(**keys) -> str:
    with pytest.raises(ValidationError) as told:
        configured(**keys)
    return str(told.value)


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
def test_what_is_no_server_is_refused(wrong):
    assert "is not a broker's address; write HOST:PORT" in refused(bootstrap_servers=[wrong])


def test_some_server_is_needed():
    assert "name one broker or more" in refused(bootstrap_servers=[])
    with pytest.raises(ValidationError, match="bootstrap_servers"):
        KafkaSettings.model_validate({"type": "kafka"})


@pytest.mark.parametrize(
    ("sasl", "why"),
    [
        ({"mechanism": "PLAIN"}, "PLAIN takes username and password"),
        ({"mechanism": "PLAIN", "username": "a"}, "PLAIN takes username and password"),
        ({"mechanism": "SCRAM-SHA-256", "password": "a"}, "SCRAM-SHA-256 takes username"),
        ({"mechanism": "PLAIN", **PASSWORD, **IDENTITY}, "and no more"),
        ({"mechanism": "PLAIN", **PASSWORD, "extensions": {"a": "b"}}, "and no more"),
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
    assert "that checks nothing" in configured(tls={"insecure": True}).describe()
    assert configured().describe().endswith("without TLS")
    assert "s3cret" not in repr(made) + made.describe() + made.model_dump_json()


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
    assert "{subject} is not known" in refused(client_id="{subject}")


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
    assert "{subject} is not known; there are event_type" in refused(topic="{subject}")


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


def test_a_binary_record_has_attributes_in_headers_and_data_as_value():
    cloudevent = make(1, key="A-1")
    record = encode(cloudevent, "binary")
    headers = dict(record.headers)
    assert record.key == b"A-1"
    assert json.loads(record.value) == cloudevent.data
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
    message = sdk.KafkaMessage(dict(record.headers), record.key, record.value)
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
    assert first.id.encode() in one.value + b"".join(value for _, value in one.headers)
    assert encode(first, mode) == one


def test_the_size_of_a_record_is_about_right():
    record = encode(make(size=LARGEST), "structured")
    assert LARGEST < record.size < LARGEST + 400


REJECTED = {
    errors.MessageSizeTooLargeError,
    errors.RecordListTooLargeError,
    errors.RecordTooLargeError,
    errors.InvalidTopicError,
    errors.CorruptRecordException,
    errors.InvalidTimestampError,
}
FOREIGN = sorted(
    {
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, BaseException) and kind.__module__ == errors.__name__
    },
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", FOREIGN, ids=lambda kind: kind.__name__)
def test_every_error_of_aiokafka_is_one_of_our_two_words(kind):
    said = verdict(kind(), "news")
    assert isinstance(said, Rejected if kind in REJECTED else Unavailable)
    assert str(said).strip()
    assert "\n" not in str(said)


def test_there_are_errors_to_look_at():
    assert len(FOREIGN) > 80


def test_an_error_that_nobody_knows_needs_a_new_connection():
    assert isinstance(verdict(RuntimeError("odd"), "news"), Lost)
    assert str(verdict(RuntimeError(), "news")) == "RuntimeError"


def test_a_code_that_aiokafka_does_not_know_is_known_here():
    assert errors.for_code(87) is InvalidRecordError
    assert isinstance(verdict(InvalidRecordError(), "news"), Rejected)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (errors.TopicAuthorizationFailedError(), "does not allow this client to write topic news"),
        (errors.UnknownTopicOrPartitionError(), "topic news does not exist"),
        (errors.NotEnoughReplicasError(), "topic news has too few replicas in sync"),
        (errors.UnknownError(), "the broker answered UnknownError"),
    ],
)
def test_what_somebody_can_put_right_waits_and_says_so(error, said):
    told = verdict(error, "news")
    assert type(told) is Unavailable
    assert said in str(told)


def caused(cause: BaseException) -> errors.KafkaConnectionError:
    error = errors.KafkaConnectionError("Connection at 127.0.0.1:1 closed")
    error.__cause__ = cause
    return error


def alert(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "x")
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionRefusedError(), "nothing listens there"),
        (gaierror(-2, "x"), "its name cannot be resolved"),
        (TimeoutError(), "no answer within 3 s"),
        (OSError(113, "No route to host"), "No route to host"),
        (caused(EOFError()), "it hung up"),
        (caused(ConnectionResetError()), "it hung up"),
        (asyncio.IncompleteReadError(b"", 4), "it hung up"),
        (alert("WRONG_VERSION_NUMBER"), "it does not speak TLS there"),
        (caused(alert("SSLV3_ALERT_CERTIFICATE_EXPIRED")), "(certificate expired)"),
        (alert("ODD"), "TLS failed: ODD"),
        (errors.SaslAuthenticationFailed("bad"), "it refuses the login: bad"),
        (errors.UnsupportedSaslMechanismError("x"), "does not take this SASL mechanism"),
        (errors.IllegalSaslStateError("x"), "does not expect SASL"),
        (ValueError("Server sent wrong signature!"), "refuses the login: Server sent wrong"),
        (caused(Unavailable("no secret")), "there is no token: no secret"),
        (errors.KafkaError("odd"), "KafkaError: odd"),
    ],
)
def test_why_a_broker_could_not_be_entered(error, said):
    assert said in why_not_connected(error, 3)


def test_the_options_change_only_when_a_file_does(tmp_path):
    password = tmp_path / "password"
    password.write_text("one")
    sasl = {"mechanism": "PLAIN", "username": "ann", "password": {"file": str(password)}}
    made = configured(sasl=sasl)
    before = log_in(made)
    assert before["sasl_plain_password"] == "one"
    assert log_in(made) == before
    password.write_text("three")
    assert log_in(made)["sasl_plain_password"] == "three"
    password.unlink()
    with pytest.raises(Unavailable, match="the SASL password cannot be read from"):
        log_in(made)


def test_a_token_source_is_the_same_option_each_time():
    sasl = {"mechanism": "OAUTHBEARER", **IDENTITY, "extensions": {"pool": "p"}}
    made = configured(sasl=sasl)
    assert log_in(made) == log_in(made)
    assert log_in(made)["sasl_oauth_token_provider"].extensions() == {"pool": "p"}


@pytest.mark.parametrize(
    ("keys", "protocol"),
    [
        ({}, "PLAINTEXT"),
        ({"tls": True}, "SSL"),
        ({"sasl": {"mechanism": "PLAIN", **PASSWORD}}, "SASL_PLAINTEXT"),
        ({"tls": True, "sasl": {"mechanism": "OAUTHBEARER", "oauth": OAUTH}}, "SASL_SSL"),
    ],
)
def test_the_protocol_follows_from_the_keys(keys, protocol):
    assert log_in(configured(**keys))["security_protocol"] == protocol


def test_the_library_does_not_log_what_results_say_nor_quote_passwords():
    names = [name for name in logging.root.manager.loggerDict if name.startswith("aiokafka")]
    assert names
    assert not any(logging.getLogger(name).isEnabledFor(logging.ERROR) for name in names)


async def test_what_we_use_of_aiokafka_beyond_its_interface_is_there():
    """An upgrade that moves these must move `producing` and `connecting` too."""
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1")
    producer._closed = True
    assert producer._sender.sender_task is None
    assert callable(producer._sender._send_produce_req)
    assert not producer._message_accumulator._batches
    assert not producer._message_accumulator._pending_batches
    assert producer.client._sync_task is None
    assert producer.client._conns == {}
    assert callable(producer.client._md_synchronizer)
    assert callable(producer.client.bootstrap)


@pytest.mark.parametrize(
    ("operations", "meant"),
    [([], None), ([-(2**31)], None), ([0], False), ([1 << 8], False), ([0b1_0001_1000], True)],
)
def test_what_a_broker_says_of_access_is_understood(operations, meant):
    assert may_write(operations) is meant


def test_an_old_broker_is_asked_what_it_can_answer():
    asked = AskTopics(["news"])
    assert asked.prepare({3: (0, 13)}).API_VERSION == 8
    assert asked.prepare({3: (0, 7)}).API_VERSION == 5


GUIDE = (Path(__file__).parents[3] / "docs/sinks/kafka.md").read_text(encoding="utf-8")


def test_the_guide_names_every_key():
    own = set(KafkaSettings.model_fields) - set(SinkSettings.model_fields)
    nested = set(TLS.model_fields) | set(settings.Sasl.model_fields)
    nested |= set(OAuth.model_fields) | set(ManagedIdentity.model_fields)
    assert [key for key in sorted(own) if f"| `{key}` |" not in GUIDE] == []
    assert [key for key in sorted(nested) if f"`{key}`" not in GUIDE] == []


def test_the_examples_of_the_guide_are_good_configurations(tmp_path):
    examples = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)
    assert len(examples) == 5
    for example in examples:
        file = tmp_path / "config.yaml"
        file.write_text(example)
        assert {sink.type for sink in load(file, {}).sinks.values()} == {"kafka"}
