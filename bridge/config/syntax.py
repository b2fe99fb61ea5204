"""Read YAML as plain data, with the line of each key.

It works on the parser's events. That keeps nesting, aliases and tags within limits, and lets it
read plain words as YAML 1.2 does: `off`, `no` and `2020-07-01` are text. Only text values may
contain `${NAME}`. Errors never quote the file: the faulty text may be a password.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

KeyPath = tuple[str | int, ...]

MOST_NESTING = 40
MOST_VALUES = 20_000
_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_BARE_VARIABLE = re.compile(r"[{\[,:][^\"'#]*\$\{\w+\}")
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?([eE][-+]?[0-9]{1,2})?")


class MalformedYaml(ValueError):
    """Text that is not YAML, or YAML that we do not accept; `line` counts from 1."""

    def __init__(self, line: int | None, problem: str) -> None:
        super().__init__(problem)
        self.line = line


@dataclass(slots=True)
class Parsed:
    """Plain data, and the line of each key path."""

    data: Any = None
    lines: dict[KeyPath, int] = field(default_factory=dict)


def parse(text: str, fill: Callable[[str], str]) -> Parsed:
    """Read one YAML document; *fill* puts variables into text values, or raises ValueError."""
    import yaml  # noqa: PLC0415  a bridge without a file does not need it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    events = iter(yaml.parse(text, Loader=loader))
    try:
        return _Reader(events, fill).document()
    except yaml.MarkedYAMLError as error:
        raise _explained(error, text) from None
    except yaml.YAMLError:
        raise MalformedYaml(None, "contains characters that YAML does not allow") from None


def _explained(error: Any, text: str) -> MalformedYaml:
    mark = error.problem_mark
    number = mark.line if mark else 0
    line = text.splitlines()[number : number + 1]
    first = error.context_mark.line if error.context_mark else number
    if any(_BARE_VARIABLE.search(one) for one in text.splitlines()[first : number + 1]):
        why = 'inside { } or [ ], a variable needs quotes: write "${NAME}"'
        return MalformedYaml(number + 1, f"is not YAML: {why}")
    if line and "\t" in line[0][: len(line[0]) - len(line[0].lstrip())]:
        return MalformedYaml(number + 1, "is indented with a tab; use spaces")
    return MalformedYaml(number + 1 if mark else None, f"is not YAML: {error.problem}")


@dataclass(slots=True)
class _Reader:
    events: Iterator[Any]
    fill: Callable[[str], str]
    parsed: Parsed = field(default_factory=Parsed)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    values: int = 0

    def document(self) -> Parsed:
        for event in self.events:
            match _kind(event):
                case "Scalar" | "Alias" | "SequenceStart" | "MappingStart":
                    self.parsed.data = self.value(event, ())
                case "DocumentStart" if self.values:
                    raise MalformedYaml(_line(event), "starts a second document; write only one")
        return self.parsed

    def value(self, event: Any, path: KeyPath) -> Any:
        self.parsed.lines.setdefault(path, _line(event))
        if len(path) > MOST_NESTING:
            raise MalformedYaml(_line(event), f"is nested more than {MOST_NESTING} deep")
        if _kind(event) == "Alias":
            return self.alias(event)
        if event.tag not in {None, "!"}:
            raise MalformedYaml(_line(event), "has a tag; put text that begins with ! in quotes")
        before = self.values
        self.count(1, event)
        built = self.built(event, path)
        if event.anchor:
            self.anchors[event.anchor] = (built, self.values - before)
        return built

    def built(self, event: Any, path: KeyPath) -> Any:
        match _kind(event):
            case "SequenceStart":
                return self.sequence(path)
            case "MappingStart":
                return self.mapping(path)
        plain = _resolved(event.value) if event.implicit[0] and not event.tag else event.value
        return self.filled(plain, event) if isinstance(plain, str) else plain

    def filled(self, text: str, event: Any) -> str:
        try:
            return self.fill(text)
        except ValueError as error:
            raise MalformedYaml(_line(event), str(error)) from None

    def alias(self, event: Any) -> Any:
        if event.anchor not in self.anchors:
            raise MalformedYaml(
                _line(event),
                "has an alias without its anchor; put text that begins with * in quotes",
            )
        built, values = self.anchors[event.anchor]
        self.count(values, event)
        return built

    def count(self, values: int, event: Any) -> None:
        self.values += values
        if self.values > MOST_VALUES:
            raise MalformedYaml(_line(event), f"contains more than {MOST_VALUES} values")

    def sequence(self, path: KeyPath) -> list[Any]:
        items: list[Any] = []
        while _kind(event := next(self.events)) != "SequenceEnd":
            items.append(self.value(event, (*path, len(items))))
        return items

    def mapping(self, path: KeyPath) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        seen: set[str] = set()
        while _kind(key := next(self.events)) != "MappingEnd":
            name = self.key(key, seen)
            if name == "<<" and key.implicit[0]:
                merged = _together(self.value(next(self.events), path), key)
                continue
            self.parsed.lines[*path, name] = _line(key)
            own[name] = self.value(next(self.events), (*path, name))
        return merged | own

    def key(self, event: Any, seen: set[str]) -> str:
        if _kind(event) != "Scalar" or event.tag or event.anchor:
            raise MalformedYaml(_line(event), "has a key that is not text")
        name: str = event.value
        if name in seen:
            raise MalformedYaml(_line(event), f"repeats the key {name!r}; give it once")
        seen.add(name)
        return name


def _together(value: Any, event: Any) -> dict[str, Any]:
    """What `<<` merges: one mapping, or several; the first one wins."""
    parts = value if isinstance(value, list) else [value]
    if not all(isinstance(part, dict) for part in parts):
        raise MalformedYaml(_line(event), "merges (<<) something that is not a mapping")
    return {name: part[name] for part in reversed(parts) for name in part}


def _resolved(text: str) -> Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _kind(event: Any) -> str:
    return type(event).__name__.removesuffix("Event")


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
