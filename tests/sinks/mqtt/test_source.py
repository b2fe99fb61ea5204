"""The keys of the MQTT approval source, and what they come to."""

from pathlib import Path

import pytest
from pydantic import ValidationError
from support.sink_settings import loaded

from bridge.config import ConfigError, load
from bridge.plugins.sources import find_approvals
from sinks.mqtt import MqttApprovals, MqttSettings, approvals


def source(**more) -> MqttApprovals:
    return MqttApprovals.model_validate(
        {"type": "mqtt", "host": "127.0.0.1", "topic": "approvals", "trust": "transport"} | more
    )


def sink(**more) -> MqttSettings:
    return MqttSettings.model_validate({"type": "mqtt", "host": "127.0.0.1"} | more)


def test_it_is_found_by_its_entry_point():
    assert find_approvals("mqtt") is approvals


@pytest.mark.parametrize(
    "topic",
    ["approvals", "a/+/b", "a/#", "#", "+", "/", "a/{vm_name}/{location}"],
)
def test_a_topic_may_contain_wildcards_and_names(topic: str):
    assert source(topic=topic).topic == topic


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "a/#/b",
        "a#",
        "a+/b",
        "$SYS/a",
        "{subject}",
        "a\0b",
        "x" * 70_000,
        5,
        "$share",
    ],
)
def test_a_topic_that_cannot_be_is_refused(topic: object):
    with pytest.raises(ValidationError):
        source(topic=topic)


@pytest.mark.parametrize("topic", ["$share/", "$share/group", "$share/group/a", "$share/+/a"])
def test_a_shared_subscription_is_refused(topic: str):
    why = "every bridge must read every approval; write the topic without \\$share/GROUP/"
    with pytest.raises(ValidationError, match=why):
        source(topic=topic)


def test_the_topic_and_whom_to_trust_have_no_default():
    with pytest.raises(ValidationError, match=r"trust\n(.|\n)*topic\n"):
        MqttApprovals.model_validate({"type": "mqtt", "host": "127.0.0.1"})


def test_only_mqtt_5_lets_us_say_how_long_a_session_is_kept():
    assert source().session_expiry == 86400
    assert source(version="3.1.1").version == "3.1.1"
    with pytest.raises(ValidationError, match="session_expiry needs version: 5"):
        source(version="3.1.1", session_expiry="1d")


@pytest.mark.parametrize("expiry", ["0s", "-1s", "200y", "forever", 4294967295])
def test_a_session_that_is_not_kept_or_never_ends_is_refused(expiry: object):
    with pytest.raises(ValidationError, match="session_expiry"):
        source(session_expiry=expiry)


@pytest.mark.parametrize(
    ("approved", "same"),
    [
        ("azure/scheduled-events/approvals", False),
        ("azure/scheduled-events/approvals/#", False),
        ("azure/scheduled-events/+", False),
        ("azure/scheduled-events/events/1", True),
        ("azure/scheduled-events/events/+", True),
        ("azure/scheduled-events/bridges/+", True),
        ("azure/scheduled-events/#", True),
        ("azure/+/+/+", True),
        ("#", True),
    ],
)
def test_it_does_not_listen_where_a_sink_publishes(approved: str, same: bool):
    assert source(topic=approved).overlaps(sink()) is same


def test_without_a_birth_topic_its_topic_does_not_overlap():
    listening = source(topic="azure/scheduled-events/bridges/+")
    assert listening.overlaps(sink())
    assert not listening.overlaps(sink(birth_topic=None))


def test_it_says_in_a_sentence_where_approvals_come_from():
    assert source(tls=True, username="web", password="x").describe() == (
        "come from MQTT topic approvals at 127.0.0.1:8883 by MQTT 5 over TLS, as user web"
    )


def test_it_takes_the_connection_of_a_sink_and_nothing_else_of_it(tmp_path: Path):
    config = loaded(
        tmp_path,
        """
sinks:
  plant:
    type: mqtt
    host: broker.example
    tls: true
    username: web
    password: secret
    client_id: only-the-sinks
    qos: 0
approvals:
  from:
    plant: {sink: plant, topic: azure/scheduled-events/approvals, trust: transport}
""",
    )
    plant, own = config.sinks["plant"], config.approvals.sources["plant"]
    assert {key: getattr(own, key) for key in MqttApprovals.SHARED} == {
        key: getattr(plant, key) for key in MqttApprovals.SHARED
    }
    assert isinstance(own, MqttApprovals)
    assert own.client_id is None


def test_events_and_approvals_on_one_topic_are_a_configuration_error(tmp_path: Path):
    with pytest.raises(ConfigError, match="need separate topics"):
        loaded(
            tmp_path,
            """
sinks:
  plant: {type: mqtt, host: 127.0.0.1}
approvals:
  from:
    plant: {sink: plant, topic: azure/#, trust: transport}
""",
        )


GUIDE = (Path(__file__).parents[3] / "docs/sinks/mqtt.md").read_text(encoding="utf-8")


def test_the_guide_names_every_key():
    chapter = GUIDE.split("## Approvals")[1]
    own = MqttApprovals.model_fields.keys() - {"type"}
    assert [key for key in own if f"`{key}`" not in chapter] == []


@pytest.mark.parametrize("block", [b for b in GUIDE.split("```yaml\n")[1:] if "approvals:" in b])
def test_the_guides_examples_are_configurations(tmp_path: Path, block: str):
    file = tmp_path / "config.yaml"
    file.write_text(block.split("```", maxsplit=1)[0])
    config = load(file, {"EVENT_GRID_CLIENT": "vm-1"})
    assert [source.type for source in config.approvals.sources.values()] == ["mqtt"]
