"""Readers of SIEM formats, independent of our writers, and the published rules of each."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pycef  # type: ignore[import-untyped]
from google.protobuf import json_format  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

DATA = Path(__file__).parents[1] / "data"
ECS_FIELDS = json.loads((DATA / "ecs-9.4.0.json").read_text(encoding="utf-8"))
OCSF = jsonschema_rs.validator_for(
    json.loads((DATA / "ocsf-1.8.0.schema.json").read_text(encoding="utf-8"))
)
CEF_ESCAPES = {"\\n": "\n", "\\r": "\r", "\\=": "=", "\\\\": "\\"}


def one_line(line: bytes) -> str:
    """The text, if no reader could take it for two lines."""
    text = line.decode()
    assert len(text.splitlines()) == 1
    return text


def read_cef(line: bytes) -> dict[str, str]:
    """As pycef reads it, custom fields under their labels; pycef leaves escapes to its caller."""
    text = one_line(line)
    keys = re.findall(r"(?:^|[ |])([A-Za-z0-9]+)=", text)
    assert len(keys) == len(set(keys)), "a key stands twice"
    found = pycef.parse(text)
    assert found is not None
    return {key: re.sub(r"\\.", _unescape, value) for key, value in found.items()}


def _unescape(escape: re.Match[str]) -> str:
    return CEF_ESCAPES[escape[0]]


def read_leef(line: bytes) -> tuple[list[str], dict[str, str]]:
    """By IBM's guide to LEEF 2.0: six header fields, the last of which is the delimiter of pairs."""
    *header, rest = one_line(line).split("|", 6)
    assert header[0] == "LEEF:2.0"
    between = header[5]
    assert len(between) == 1
    pairs = [pair.partition("=") for pair in rest.split(between)]
    keys = [key for key, _, _ in pairs]
    assert len(keys) == len(set(keys)), "a key stands twice"
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", key) for key in keys), keys
    assert not re.search(r"[|\t\x00-\x1f]", rest)
    return header, {key: value for key, _, value in pairs}


def read_json(line: bytes) -> dict[str, Any]:
    """JSON in one line, without duplicate keys."""
    decoded: dict[str, Any] = json.loads(one_line(line), object_pairs_hook=_once)
    return decoded


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(pairs) == len(dict(pairs)), "a key stands twice"
    return dict(pairs)


def read_ocsf(line: bytes) -> dict[str, Any]:
    record = read_json(line)
    OCSF.validate(record)
    assert record["type_uid"] == record["class_uid"] * 100 + record["activity_id"]
    return record


def read_ecs(line: bytes) -> dict[str, Any]:
    document = read_json(line)
    for name, value in _flat({key: each for key, each in document.items() if key != "azure"}):
        if not name.startswith("labels."):
            _check_ecs(name, value)
    [category] = document["event"]["category"]
    expected = ECS_FIELDS["event.category"]["allowed"][category]
    assert set(document["event"]["type"]) <= set(expected)
    return document


def _flat(document: dict[str, Any], path: str = "") -> list[tuple[str, Any]]:
    found = []
    for key, value in document.items():
        name = f"{path}{key}"
        found += _flat(value, f"{name}.") if isinstance(value, dict) else [(name, value)]
    return found


def _check_ecs(name: str, value: Any) -> None:
    rule = ECS_FIELDS[name]
    assert isinstance(value, list) == rule.get("array", False), name
    for each in value if isinstance(value, list) else [value]:
        if rule["type"] == "long":
            assert type(each) is int, name
            assert -(2**63) <= each < 2**63, name
        else:
            assert isinstance(each, str), name
            assert len(each) <= rule.get("ignore_above", len(each)), name
        assert not rule.get("allowed") or each in rule["allowed"], name


def read_otlp(line: bytes) -> ExportLogsServiceRequest:
    """As the generated protobuf code reads it, which refuses unknown fields and wrong types."""
    return json_format.Parse(one_line(line), ExportLogsServiceRequest())


def attributes(pairs: Any) -> dict[str, Any]:
    """Attributes as plain values; a key may occur only once."""
    keys = [pair.key for pair in pairs]
    assert len(keys) == len(set(keys)), "a key stands twice"
    return {pair.key: _plain(pair.value) for pair in pairs}


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(each) for each in value.array_value.values]
    if kind == "kvlist_value":
        return attributes(value.kvlist_value.values)
    return getattr(value, kind) if kind else None
