"""The published schemas: where they are, and how to read them by name."""

import difflib
import json
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[1]
_SCHEMA = ".schema.json"
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
    return files[found].read_text(encoding="utf-8")


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
