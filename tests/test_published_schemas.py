"""What we publish about our messages: schemas, AsyncAPI, and the page that explains them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from support.world import published

from bridge.common import schemas
from bridge.core.cloudevent import PREFIX
from bridge.core.messages import KINDS
from bridge.policy.message import APPROVE

ROOT = Path(__file__).parents[1]
SCHEMAS = ROOT / "schemas"
ASYNCAPI = yaml.safe_load((SCHEMAS / "asyncapi.yaml").read_text(encoding="utf-8"))
NAMES = ("scheduled-event", "approval-outcome", "source", "audit")
INBOUND = ("approve",)
SENT = {
    name: message
    for name, message in ASYNCAPI["components"]["messages"].items()
    if message["name"] != APPROVE
}
TYPES = {f"{PREFIX}{kind}.v1" for kind in KINDS}
# What means the same in draft-07, which AsyncAPI speaks, and in 2020-12.
COMMON = {
    *("$schema", "$id", "title", "description", "type", "required", "properties", "items"),
    *("additionalProperties", "anyOf", "examples", "format", "minLength", "minimum"),
}


def load(name: str) -> dict[str, Any]:
    text = (SCHEMAS / f"{name}.v1.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def subschemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from subschemas(inner, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from subschemas(schema[keyword], f"{path}.{keyword}")


@pytest.mark.parametrize("name", [*NAMES, *INBOUND])
def test_a_schema_is_valid_and_named_as_dataschema_names_it(name: str):
    schema = load(name)

    jsonschema_rs.Draft202012Validator(schema)
    jsonschema_rs.Draft7Validator({**schema, "$schema": "http://json-schema.org/draft-07/schema#"})
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"urn:scheduled-events-bridge:schema:{name}:v1"


@pytest.mark.parametrize("name", [*NAMES, *INBOUND])
def test_a_schema_is_open_explained_and_free_of_what_the_drafts_disagree_on(name: str):
    closed = {"enum"} if name in INBOUND else set()
    for path, schema in subschemas(load(name)):
        assert set(schema) <= COMMON | closed, path
        assert schema.get("additionalProperties") is not False, path
        if not path.endswith((".items", ".additionalProperties")):
            assert schema["description"].endswith("."), path


@pytest.mark.parametrize("name", [*NAMES, *INBOUND])
def test_the_examples_in_a_schema_conform_to_it(name: str):
    for path, schema in subschemas(load(name)):
        check = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
        for example in schema.get("examples", []):
            assert check.is_valid(example), path


def test_each_schema_is_that_of_some_type():
    used = {each.attributes["dataschema"] for each in published().values()}

    assert used == {load(name)["$id"] for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_every_field_that_we_write_is_in_the_schema_and_every_required_one_is_written(name: str):
    schema = load(name)
    for each in published().values():
        if each.attributes["dataschema"] == schema["$id"]:
            assert set(schema["required"]) <= set(each.data) <= set(schema["properties"])


# --- AsyncAPI ------------------------------------------------------------------------------------


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for inner in node.values():
            yield from references(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from references(inner)


def resolve(reference: str) -> Any:
    file, _, pointer = reference.partition("#")
    target = json.loads((SCHEMAS / file).read_text(encoding="utf-8")) if file else ASYNCAPI
    for step in pointer.split("/")[1:]:
        target = target[step]
    return target


def inline(node: Any) -> Any:
    if isinstance(node, dict):
        if "$ref" in node:
            return inline(resolve(node["$ref"]))
        return {name: inline(inner) for name, inner in node.items() if name != "$id"}
    return [inline(inner) for inner in node] if isinstance(node, list) else node


def test_every_reference_leads_somewhere():
    found = list(references(ASYNCAPI))

    assert {Path(each).name for each in found if not each.startswith("#")} == {
        f"{name}.v1.schema.json" for name in (*NAMES, *INBOUND)
    }
    for reference in found:
        assert resolve(reference), reference


WHOLE = yaml.safe_load(schemas.read("asyncapi"))
EXAMPLES = json.loads((SCHEMAS / "examples.v1.json").read_text(encoding="utf-8"))


def test_what_the_command_prints_refers_only_to_itself():
    for reference in references(WHOLE):
        assert reference.startswith("#/"), reference
        target = WHOLE
        for step in reference.split("/")[1:]:
            target = target[step]
    for name in (*NAMES, *INBOUND, "config"):
        assert all(one.startswith("#/") for one in references(json.loads(schemas.read(name))))


def test_the_examples_are_what_the_code_writes():
    """If not, run scripts/schema-examples."""
    sent = {kind: each for kind, each in EXAMPLES.items() if kind != APPROVE}
    assert sent == {kind: each.envelope for kind, each in published().items()}


@pytest.mark.parametrize(
    "message", WHOLE["components"]["messages"].values(), ids=lambda m: m["name"]
)
def test_each_message_has_an_example_that_conforms(message):
    check = jsonschema_rs.validator_for(
        {**message["payload"], "components": WHOLE["components"]}, validate_formats=True
    )
    [example] = message["examples"]
    check.validate(example["payload"])
    assert example["payload"]["type"] == message["name"]


def test_each_transport_has_its_server_and_its_channels():
    places = {
        name: channel["servers"][0]["$ref"].rpartition("/")[2]
        for name, channel in WHOLE["channels"].items()
        if "servers" in channel
    }
    assert places == {
        **dict.fromkeys(("kafkaEvents", "kafkaState", "kafkaApprovals"), "kafka"),
        **dict.fromkeys(("mqttEvents", "mqttApprovals", "mqttBridges"), "mqtt"),
        "webhookEvents": "receiver",
        "httpApprovals": "bridge",
    }
    assert WHOLE["channels"]["kafkaEvents"]["messages"] == WHOLE["channels"]["events"]["messages"]
    used = {each["channel"]["$ref"].rpartition("/")[2] for each in WHOLE["operations"].values()}
    assert used == set(WHOLE["channels"])


def test_asyncapi_names_the_types_that_there_are_and_no_others():
    assert ASYNCAPI["asyncapi"] == "3.0.0"
    assert {message["name"] for message in SENT.values()} == TYPES
    assert [inline(each) for each in ASYNCAPI["channels"]["events"]["messages"].values()] == [
        inline(each) for each in SENT.values()
    ]
    [received] = ASYNCAPI["channels"]["approvals"]["messages"].values()
    assert inline(received)["name"] == APPROVE


@pytest.mark.parametrize("message", SENT.values(), ids=lambda each: each["name"])
def test_what_we_publish_is_what_asyncapi_says(message):
    check = jsonschema_rs.validator_for(inline(message["payload"]), validate_formats=True)
    every = published()

    assert [name for name, each in every.items() if check.is_valid(each.envelope)] == [
        message["name"]
    ]


# --- the page ------------------------------------------------------------------------------------

PAGE = ROOT / "docs" / "events.md"


def test_the_page_shows_each_type_as_the_code_writes_it():
    blocks = re.findall(r"```json\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    shown = [json.loads(block) for block in blocks]

    assert {each["type"]: each for each in shown if "specversion" in each} == {
        kind: each.envelope for kind, each in published().items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_page_explains_each_field(name: str):
    text = PAGE.read_text(encoding="utf-8")

    for path, _ in subschemas(load(name)):
        field = path.removeprefix(".").replace("pending.items.", "")
        if field and not field.endswith(("items", "additionalProperties", ".from", ".to")):
            assert f"| `{field}` |" in text, f"docs/events.md says nothing of {field}"
