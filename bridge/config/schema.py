"""The configuration's JSON Schema, from the models of the bridge and its own plugins."""

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from bridge.common.fields import write_duration
from bridge.config.models import Config
from bridge.config.values import SINK_NAME
from bridge.plugins.formats import find_format, installed_formats
from bridge.plugins.sinks import find_sink, installed_sinks
from bridge.plugins.sources import find_approvals, installed_approvals

ID = "urn:scheduled-events-bridge:schema:config:v1"
_OWN = "sinks."


def json_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 for the file; it leaves out plugins of other packages."""
    sinks = _ours(installed_sinks(), find_sink)
    sources = _ours(installed_approvals(), find_approvals)
    formats = _ours(installed_formats(), find_format)
    plugins = [*sinks.values(), *sources.values(), *formats.values()]
    models: list[type[BaseModel]] = [Config, *plugins]
    refs, schema = models_json_schema([(model, "validation") for model in models])
    definitions = _as_written(schema["$defs"])
    _tokens(definitions["HttpSettings"]["properties"]["tokens"], definitions["TokenSettings"])
    config = definitions.pop(_name(refs[Config, "validation"]))

    def defined(model: type[BaseModel]) -> dict[str, Any]:
        found: dict[str, Any] = definitions[_name(refs[model, "validation"])]
        return found

    forms = {f"format-{kind}": _typed(kind, defined(model)) for kind, model in formats.items()}
    to = {
        f"sink-{kind}": _with_formats(_typed(kind, defined(model)), forms)
        for kind, model in sinks.items()
    }
    back = _sources({kind: defined(model) for kind, model in sources.items()})
    used = {_name(refs[model, "validation"]) for model in plugins}
    used |= {"SinkSettings", "ApprovalSettings", "FormatSettings"}
    kept = {name: value for name, value in definitions.items() if name not in used}
    properties = {key: _or_null(value) for key, value in config["properties"].items()}
    properties["sinks"] = _or_null(_named(config["properties"]["sinks"], to))
    approvals = definitions["ApprovalsSettings"]["properties"]
    approvals["from"] = _or_null(_named(approvals["from"], back))
    return _whole(properties, {**kept, **to, **back, **forms})


def _whole(properties: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "scheduled-events-bridge configuration",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "$defs": definitions,
    }


def _ours(
    installed: Mapping[str, EntryPoint], find: Callable[[str], Any]
) -> dict[str, type[BaseModel]]:
    return {
        kind: find(kind).settings
        for kind, point in sorted(installed.items())
        if point.value.startswith(_OWN)
    }


def _name(reference: dict[str, Any]) -> str:
    return str(reference["$ref"]).rpartition("/")[2]


def _tokens(field: dict[str, Any], token: dict[str, Any]) -> None:
    """Allow a bare secret as a token, and a token without a name."""
    token["required"].remove("name")
    field["items"] = {"anyOf": [field["items"], token["properties"]["token"]]}


def _typed(kind: str, definition: dict[str, Any]) -> dict[str, Any]:
    """Require `type` and fix its value: it decides which branch applies."""
    properties = {**definition["properties"], "type": {"const": kind}}
    required = sorted({*definition.get("required", ()), "type"})
    return {**definition, "properties": properties, "required": required}


def _with_formats(
    definition: dict[str, Any], forms: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """Allow the name of a format whose keys all have defaults, or a mapping with its keys."""
    alone = [
        definition["properties"]["type"]["const"]
        for definition in forms.values()
        if definition["required"] == ["type"]
    ]
    choices = [{"$ref": f"#/$defs/{name}"} for name in forms]
    field = {
        **definition["properties"]["format"],
        "anyOf": [{"enum": alone}, *choices, {"type": "null"}],
    }
    return {**definition, "properties": {**definition["properties"], "format": field}}


def _sources(kinds: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Each source with its own connection, or with the connection and type of a sink."""
    if not kinds:
        return {}
    own = {f"approvals-{kind}": _typed(kind, definition) for kind, definition in kinds.items()}
    trust = next(iter(kinds.values()))["properties"]["trust"]
    keys = [key for definition in kinds.values() for key in definition["properties"]]
    joined = {
        "description": "use that sink's connection; all keys of its type except type are allowed",
        "type": "object",
        "properties": {"sink": {"type": "string"}, "type": False, "trust": trust},
        "propertyNames": {"enum": sorted({*keys, "sink", "type"})},
        "required": ["sink", "trust"],
    }
    return {**own, "approvals-of-sink": joined}


def _named(field: dict[str, Any], branches: dict[str, Any]) -> dict[str, Any]:
    choices = [{"$ref": f"#/$defs/{name}"} for name in branches]
    return {
        "type": "object",
        "description": field["description"],
        "propertyNames": {"pattern": f"^{SINK_NAME.pattern}$"},
        "additionalProperties": {"oneOf": choices} if choices else False,
    }


def _or_null(definition: dict[str, Any]) -> dict[str, Any]:
    """Allow null: an empty section counts as absent."""
    if {"type": "null"} in definition.get("anyOf", ()):
        return definition
    about = {key: definition[key] for key in definition if key in {"description", "default"}}
    shape = {key: definition[key] for key in definition if key not in about}
    return {**about, "anyOf": [shape, {"type": "null"}]}


def _as_written(node: Any) -> Any:
    """Write the defaults of durations and sizes as text, as in the file; models have numbers.

    Remove titles, which repeat the keys, and defaults of sections, which repeat those of the keys.
    Also remove the format of paths: JSON Schema has none.
    """
    if isinstance(node, list):
        return [_as_written(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _as_written(value) for key, value in node.items() if not _is_noise(key, value)}
    examples = node.get("examples")
    if node.get("type") == "string" and examples:
        node = {key: value for key, value in node.items() if not key.endswith("imum")}
        if isinstance(node.get("default"), int | float):
            node["default"] = _written(node["default"], duration=examples == ["5s"])
    return node


def _is_noise(key: str, value: object) -> bool:
    return (
        (key == "title" and isinstance(value, str))
        or (key == "default" and isinstance(value, dict))
        or (key, value) == ("format", "path")
    )


def _written(value: float, *, duration: bool) -> str:
    if duration:
        return write_duration(value)
    for unit, size in (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)):
        if value % size == 0 and value:
            return f"{value // size:.0f}{unit}"
    return f"{value:.0f}B"
