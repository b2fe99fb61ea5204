import json
import re
from pathlib import Path

import jsonschema_rs
import pytest
import yaml
from support.config_text import approvals

import bridge.config.schema
from bridge.config import ConfigError
from bridge.config.schema import json_schema
from bridge.config.syntax import parse
from bridge.plugins.sinks import installed_sinks
from bridge.plugins.sources import installed_approvals

ROOT = Path(__file__).parents[3]


def committed() -> dict:
    return json.loads((ROOT / "schemas/config.v1.schema.json").read_text())


def test_the_committed_schema_matches_the_models():
    assert committed() == json_schema(), "run: scripts/config-schema"


def test_the_schema_accepts_and_refuses_the_same_as_the_bridge(read):
    valid = jsonschema_rs.validator_for(committed())
    for text in (
        "{source: {api_version: '2017-03-01'}, http: null}",
        "{sinks: {a: {type: stdout}, b: {type: file, path: /x}}}",
        "{http: {listen: null, tokens: [abc, {file: /x}, {token: x}, {name: a, token: {file: x}}]}}",
        "{stop_grace: 1.5s, journal: {max_size: 1 GiB}}",
        "{sinks: {a: {type: stdout, format: slack}, b: {type: stdout, format: {type: teams}}}}",
        "{sinks: {a: {type: stdout, format: {type: pagerduty, routing_key: {file: x}}}}}",
        "{sinks: {a: {type: stdout, format: {type: template, template: a}}}}",
    ):
        assert read(text)
        assert valid.is_valid(yaml.safe_load(text)), text
    for text in (
        "{sinks: {a: {type: telegraph}}}",
        "{sinks: {a: {type: file}}}",
        "{sinks: {a: {}}}",
        "{sinks: {A: {type: stdout}}}",
        "{source: {scopes: own}}",
        "{sinks: {a: {type: stdout, format: slak}}}",
        "{sinks: {a: {type: stdout, format: pagerduty}}}",
        "{sinks: {a: {type: stdout, format: {type: slack, routing_key: a}}}}",
        "{stop_grace: 5}",
        "{http: {tokens: [{name: a}]}}",
    ):
        with pytest.raises(ConfigError):
            read(text)
        assert not valid.is_valid(yaml.safe_load(text)), text


def test_the_schema_accepts_every_default_in_it():
    schema = committed()
    seen = 0
    for definition in [schema, *schema["$defs"].values()]:
        for field in definition.get("properties", {}).values():
            if isinstance(field, dict) and "default" in field:
                alone = {**field, "$defs": schema["$defs"]}
                jsonschema_rs.validator_for(alone).validate(field["default"])
                seen += 1
    assert seen > 20


def test_the_examples_in_the_guide_are_valid():
    guide = (ROOT / "docs/configuration.md").read_text()
    examples = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    assert examples
    for example in examples:
        jsonschema_rs.validator_for(committed()).validate(parse(example, str).data)


def test_the_guide_names_every_key():
    schema = committed()
    guide = (ROOT / "docs/configuration.md").read_text()
    sections = {
        "SourceSettings": "source",
        "EnvelopeSettings": "cloudevents",
        "JournalSettings": "journal",
    }
    sections |= {"ApprovalsSettings": "approvals", "HttpSettings": "http"}
    sections |= {"TelemetrySettings": "telemetry"}
    keys = [
        f"{at}.{key}"
        for name, at in sections.items()
        for key in schema["$defs"][name]["properties"]
    ]
    keys += [key for key in schema["properties"] if key not in sections.values()]
    keys += schema["$defs"]["sink-stdout"]["properties"]
    assert [key for key in keys if f"`{key}`" not in guide] == []


def test_the_schema_accepts_sources_with_their_own_or_a_sinks_connection(monkeypatch, tail):
    sinks = {name: point for name, point in installed_sinks().items() if name in {"file", "stdout"}}
    monkeypatch.setattr(bridge.config.schema, "installed_sinks", lambda: sinks)
    ours = {"tail": installed_approvals()["tail"]}
    monkeypatch.setattr(bridge.config.schema, "installed_approvals", lambda: ours)
    monkeypatch.setattr(bridge.config.schema, "_OWN", ("sinks.", "support."))
    valid = jsonschema_rs.validator_for(json_schema())

    def takes(source: str) -> bool:
        return valid.is_valid(yaml.safe_load(approvals(f"from: {{a: {source}}}")))

    assert takes("{type: tail, path: /x, trust: transport}")
    assert takes("{sink: a, trust: transport}")
    assert takes("{sink: a, path: /x, trust: transport}")
    assert not takes("{sink: a}")
    assert not takes("{sink: a, type: tail, trust: transport}")
    assert not takes("{sink: a, pth: /x, trust: transport}")
    assert not takes("{type: tail, trust: transport}")
    assert not takes("{type: tail, path: /x, trust: maybe}")
    assert valid.is_valid(yaml.safe_load(approvals("from: null")))
