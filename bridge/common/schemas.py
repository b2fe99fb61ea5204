"""The published schemas: where they are, and how to read them by name."""

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[1]
_SCHEMA = ".schema.json"
_EXAMPLES = "examples.v1.json"
_PLACES = (_PACKAGE / "_schemas", _PACKAGE.parent / "schemas")


def directory() -> Path:
    """The schemas: beside the code in an installed package, beside the package in a checkout."""
    return next((place for place in _PLACES if place.is_dir()), _PLACES[0])


def names() -> list[str]:
    """The names of all schemas: `config.v1` and others, `asyncapi` and `openapi`."""
    return sorted(_files())


def read(name: str) -> str:
    """The text of *name*; without a version, the newest one. LookupError lists all names."""
    files = _files()
    versions = [known for known in files if name and known.rpartition(".")[0] == name]
    found = name if name in files else max(versions, key=_version, default=None)
    if found is None:
        nearest = difflib.get_close_matches(name, files, n=1)
        hint = (
            f"did you mean {nearest[0]}?" if nearest else f"choose from {', '.join(sorted(files))}"
        )
        raise LookupError(f"there is no schema {name!r}; {hint}")
    text = files[found].read_text(encoding="utf-8")
    return text if files[found].suffix == ".json" else _whole(text)


def _whole(text: str) -> str:
    """The AsyncAPI document with what it refers to: the schemas, and an example of each message."""
    import yaml  # noqa: PLC0415  only for this document

    document = yaml.safe_load(text)
    parts, place = document["components"], directory()
    known = {f"./{path.name}": path for path in place.glob(f"*{_SCHEMA}")}
    used: dict[str, Any] = {}
    parts["messages"] = _inside(parts["messages"], known, used)
    parts["schemas"] |= used
    examples = json.loads((place / _EXAMPLES).read_text(encoding="utf-8"))
    for message in parts["messages"].values():
        message["examples"] = [{"payload": examples[message["name"]]}]
    dumper = type("Dumper", (yaml.SafeDumper,), {"ignore_aliases": lambda *_: True})
    text = yaml.dump(document, Dumper=dumper, sort_keys=False, allow_unicode=True, width=110)
    return str(text)


def _inside(node: Any, known: Mapping[str, Path], used: dict[str, Any]) -> Any:
    """With references to files turned into references to *used*, which gets what is in them."""
    if isinstance(node, list):
        return [_inside(item, known, used) for item in node]
    if not isinstance(node, dict):
        return node
    path = known.get(str(node.get("$ref")))
    if path is None:
        return {key: _inside(value, known, used) for key, value in node.items()}
    name = path.name.removesuffix(_SCHEMA)
    content = json.loads(path.read_text(encoding="utf-8"))
    used[name] = {key: value for key, value in content.items() if key not in {"$id", "$schema"}}
    return {"$ref": f"#/components/schemas/{name}"}


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema *name*, decoded."""
    decoded: dict[str, Any] = json.loads(read(name))
    return decoded


def _files() -> dict[str, Path]:
    place = directory()
    found = {path.name.removesuffix(_SCHEMA): path for path in place.glob(f"*{_SCHEMA}")}
    others = (*place.glob("asyncapi.yaml"), *place.glob("openapi.json"))
    return found | {path.stem: path for path in others}


def _version(name: str) -> int:
    number = name.rpartition(".v")[2]
    return int(number) if number.isdecimal() else 0
