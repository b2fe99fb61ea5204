"""The keys of the Kafka approval source, and what they come to."""

from pathlib import Path

import pytest
from pydantic import ValidationError
from support.sink_settings import loaded

from bridge.config import ConfigError
from bridge.plugins.sources import find_approvals
from sinks.kafka import KafkaApprovals, KafkaSettings, approvals


def source(**more) -> KafkaApprovals:
    return KafkaApprovals.model_validate(
        {"type": "kafka", "bootstrap_servers": ["127.0.0.1:9092"], "trust": "transport"}
        | {"topic": "approvals"}
        | more
    )


def sink(topic: str) -> KafkaSettings:
    return KafkaSettings.model_validate(
        {"type": "kafka", "bootstrap_servers": ["127.0.0.1:9092"], "topic": topic}
    )


def test_it_is_found_by_its_entry_point():
    assert find_approvals("kafka") is approvals


@pytest.mark.parametrize(
    "topic", ["", "a/b", "a b", "approvals-{event_type}", "approvals-{subject}", "..", "x" * 250]
)
def test_a_topic_that_cannot_be_is_refused(topic: str):
    with pytest.raises(ValidationError):
        source(topic=topic)


def test_the_topic_has_no_default():
    with pytest.raises(ValidationError, match="topic"):
        KafkaApprovals.model_validate(
            {"type": "kafka", "bootstrap_servers": ["127.0.0.1:9092"], "trust": "transport"}
        )


def test_a_consumer_group_is_not_a_key(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"approvals\.from\.bus\.group: unknown key"):
        loaded(
            tmp_path,
            """
sinks:
  bus: {type: kafka, bootstrap_servers: [127.0.0.1], topic: events}
approvals:
  from:
    bus: {sink: bus, topic: approvals, trust: transport, group: bridges}
""",
        )


@pytest.mark.parametrize(
    ("events", "approved", "same"),
    [
        ("azure.events", "azure.approvals", False),
        ("azure.events", "azure.events", True),
        ("azure.{event_type}", "azure.approvals", False),
        ("azure.{event_type}", "azure.reboot", True),
        ("azure.{event_type}", "azure.other", True),
        ("azure.{vm_name}", "azure.{vm_name}", True),
        ("azure.{vm_name}", "azure.{location}", False),
        ("azure.{vm_name}", "azure.approvals", False),
    ],
)
def test_it_does_not_listen_where_a_sink_publishes(events: str, approved: str, same: bool):
    assert source(topic=approved).overlaps(sink(events)) is same


def test_it_says_in_a_sentence_where_approvals_come_from():
    said = source(tls=True).describe()
    assert said == "come from Kafka topic approvals at 127.0.0.1:9092 over TLS"


def test_it_takes_the_connection_of_a_sink_and_nothing_else_of_it(tmp_path: Path):
    config = loaded(
        tmp_path,
        """
sinks:
  bus:
    type: kafka
    bootstrap_servers: [kafka-1.example:9093]
    topic: events
    mode: structured
    tls: true
    sasl: {mechanism: PLAIN, username: web, password: secret}
approvals:
  from:
    bus: {sink: bus, topic: approvals, trust: transport}
""",
    )
    bus, own = config.sinks["bus"], config.approvals.sources["bus"]
    assert {key: getattr(own, key) for key in KafkaApprovals.SHARED} == {
        key: getattr(bus, key) for key in KafkaApprovals.SHARED
    }
    assert isinstance(own, KafkaApprovals)
    assert own.topic == "approvals"


def test_events_and_approvals_on_one_topic_are_a_configuration_error(tmp_path: Path):
    with pytest.raises(ConfigError, match="need separate topics"):
        loaded(
            tmp_path,
            """
sinks:
  bus: {type: kafka, bootstrap_servers: [127.0.0.1], topic: events}
approvals:
  from:
    bus: {sink: bus, topic: events, trust: transport}
""",
        )
