import json

import pytest
import yaml

from bridge.common import schemas as contract

ASYNCAPI = """
components:
  messages: {a: {name: a, payload: [{$ref: ./audit.v2.schema.json}, {$ref: '#/else'}]}}
  schemas: {}
"""


@pytest.fixture
def schemas(tmp_path, monkeypatch):
    inside, beside = tmp_path / "bridge" / "_schemas", tmp_path / "schemas"
    monkeypatch.setattr(contract, "_PLACES", (inside, beside))
    beside.mkdir(parents=True)
    for number in (1, 2, 10):
        (beside / f"audit.v{number}.schema.json").write_text(json.dumps({"version": number}))
    (beside / "asyncapi.yaml").write_text(ASYNCAPI)
    (beside / "examples.v1.json").write_text('{"a": {"n": 1}}')
    (beside / "openapi.json").write_text("{}")
    (beside / "ids.v1.json").write_text("[]")
    return inside, beside


def test_the_schemas_of_this_tree_are_found():
    assert "config.v1" in contract.names()
    assert contract.schema("config")["$id"] == "urn:scheduled-events-bridge:schema:config:v1"


def test_only_schemas_and_the_two_api_documents_have_names(schemas):
    assert contract.names() == ["asyncapi", "audit.v1", "audit.v10", "audit.v2", "openapi"]


def test_the_asyncapi_document_contains_what_it_refers_to(schemas):
    whole = yaml.safe_load(contract.read("asyncapi"))
    assert whole["components"] == {
        "messages": {
            "a": {
                "name": "a",
                "payload": [{"$ref": "#/components/schemas/audit.v2"}, {"$ref": "#/else"}],
                "examples": [{"payload": {"n": 1}}],
            }
        },
        "schemas": {"audit.v2": {"version": 2}},
    }


def test_without_a_version_the_newest_schema_is_read(schemas):
    assert contract.schema("audit") == {"version": 10}
    assert contract.schema("audit.v1") == {"version": 1}


def test_an_installed_package_brings_its_own(schemas):
    inside, beside = schemas
    assert contract.directory() == beside
    inside.mkdir(parents=True)
    assert contract.directory() == inside


def test_an_unknown_name_suggests_the_nearest_or_lists_all(schemas):
    with pytest.raises(LookupError, match=r"no schema 'audti.v1'; did you mean audit\.v1"):
        contract.read("audti.v1")
    with pytest.raises(LookupError, match=r"choose from asyncapi, audit\.v1, "):
        contract.read("xyzzy")


@pytest.mark.parametrize("name", ["../pyproject", "", "/etc/passwd", "."])
def test_a_name_is_not_a_path(schemas, name):
    with pytest.raises(LookupError):
        contract.read(name)
