"""The keys that all sinks have, and how sinks are found."""

import pytest
from pydantic import ValidationError
from support.cloudevents import make

import bridge.plugins
from bridge.plugins import Retry, SinkPlugin, SinkSettings, open_format
from bridge.plugins.sinks import find_sink, installed_sinks


def test_the_exported_names_are_those_that_sinks_may_use():
    exported = bridge.plugins.__all__
    assert sorted(exported) == sorted(set(exported))
    assert all(hasattr(bridge.plugins, name) for name in exported)
    needed = {"CloudEvent", "Place", "Rejected", "Result", "Send", "SinkPlugin", "SinkSettings"}
    assert needed | {"Unavailable", "Duration", "Size", "Secret", "Settings"} <= set(exported)


def test_our_own_sinks_use_the_public_entry_points():
    assert {"stdout", "file"} <= set(installed_sinks())
    for kind in ("stdout", "file"):
        assert isinstance(find_sink(kind), SinkPlugin)


def test_the_keys_of_all_sinks_have_the_documented_defaults():
    settings = SinkSettings(type="any")
    assert settings.required is True
    assert settings.stale == "deliver"
    assert (settings.retry.max_age, settings.retry.timeout) == (7 * 86400, 10)
    assert (settings.only.types, settings.only.event_types) == (None, None)
    assert settings.describe() == "is a sink of type any"


def test_an_attempt_needs_some_time():
    with pytest.raises(ValidationError, match="greater than 0"):
        Retry.model_validate({"timeout": "0s"})


def test_the_json_schema_of_a_sink_is_complete():
    schema = find_sink("file").settings.model_json_schema()
    assert schema["additionalProperties"] is False
    assert set(schema["required"]) == {"type", "path"}
    assert {"only", "retry", "stale", "max_size"} <= set(schema["properties"])


def test_a_sink_has_a_format_and_a_largest_batch():
    plain = SinkSettings(type="any")
    assert (plain.words, plain.largest_batch, plain.longest_send) == ("JSON", 500, None)
    chat = SinkSettings.model_validate({"type": "any", "format": "slack"})
    assert (chat.words, chat.stale) == ("slack", "skip")


def test_a_sink_uses_the_format_that_it_is_given_else_cloudevents():
    plain = SinkSettings(type="any")
    assert open_format(plain).content_type.startswith("application/cloudevents+json")
    siem = SinkSettings.model_validate({"type": "any", "format": "cef"})
    assert open_format(siem).encode(make()).startswith(b"CEF:")


@pytest.mark.parametrize(
    ("keys", "connects"),
    [
        ({"type": "stdout"}, True),
        ({"type": "file", "path": "/a"}, True),
        ({"type": "kafka", "bootstrap_servers": ["a:9092"]}, True),
        ({"type": "kafka", "bootstrap_servers": ["a:9092"], "keep_connected": False}, False),
        ({"type": "mqtt", "host": "a", "topic": "a/b"}, True),
        ({"type": "webhook", "url": "https://a.example"}, False),
        ({"type": "splunk", "url": "https://a.example", "token": "t"}, False),
        ({"type": "command", "argv": ["true"]}, False),
    ],
)
def test_a_sink_says_whether_entering_it_proves_a_connection(keys, connects):
    assert find_sink(keys["type"]).settings.model_validate(keys).connects is connects


def test_a_sink_that_does_not_say_proves_nothing_by_entering():
    assert not SinkSettings(type="x").connects
