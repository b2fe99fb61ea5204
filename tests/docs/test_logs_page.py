"""The page about logs lists every event that the code logs, with its level and fields, no other."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from bridge.core.cloudevent import TRANSITIONS
from bridge.core.messages import OutcomeKind
from bridge.runtime.status import SinkState

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
LEVELS = {"debug", "info", "warning", "error", "exception", "log"}
NAME = re.compile(r"[a-z_]+\.[a-z_]+")
COMPOSED = {
    "bridge/approvals/publisher.py": ("approval.", get_args(OutcomeKind)),
    "bridge/delivery/dispatcher.py": ("sink.", get_args(SinkState)),
    "bridge/source/announcements.py": ("event.", TRANSITIONS),
    "bridge/web/access/authentication.py": ("http.", ("token_refused", "certificate_refused")),
}
"""Modules that put names together, from a prefix and one of these."""


@dataclass(frozen=True)
class Line:
    """An event with its possible levels and its fields; None where the code computes them."""

    levels: frozenset[str] | None
    fields: frozenset[str] | None


def listed() -> dict[str, Line]:
    """The events of the page."""
    found: dict[str, Line] = {}
    for line in PAGE.splitlines():
        if line.startswith("| `"):
            events, levels, fields, _ = line.strip("| ").split(" | ", 3)
            said = Line(frozenset(levels.split(", ")), frozenset(re.findall(r"`(\w+)`", fields)))
            found |= dict.fromkeys(re.findall(r"`([^`]+)`", events), said)
    return found


def calls() -> Iterator[tuple[str, ast.AST, ast.Call]]:
    """Each call of `log`, with its module and its function."""
    for package in ("bridge", "sinks"):
        for path in (ROOT / package).rglob("*.py"):
            place = path.relative_to(ROOT).as_posix()
            for scope in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield from ((place, scope, one) for one in ast.walk(scope) if is_log(one))  # type: ignore[misc]  # is_log narrows


def is_log(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    owner = node.func.value
    return isinstance(owner, ast.Name) and owner.id == "log" and node.func.attr in LEVELS


def names(place: str, call: ast.Call) -> list[str]:
    """What the call logs: a name that is written out, or all that its module puts together."""
    written = [each.value for each in call.args if isinstance(each, ast.Constant)]
    found = [one for one in written if isinstance(one, str) and NAME.fullmatch(one)]
    if found or any(isinstance(one, str) for one in written):
        return found
    prefix, ends = COMPOSED[place]
    return [f"{prefix}{end}" for end in ends]


def level(call: ast.Call) -> frozenset[str] | None:
    assert isinstance(call.func, ast.Attribute)
    word = call.func.attr
    return None if word == "log" else frozenset({"error" if word == "exception" else word})


def fields(scope: ast.AST, call: ast.Call) -> frozenset[str] | None:
    """The names of the fields, if they are dictionaries written out in the same function."""
    extra = next((one.value for one in call.keywords if one.arg == "extra"), None)
    if extra is None:
        return frozenset()
    local = {
        target.id: node.value
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return keys(extra, local)


def keys(value: ast.AST | None, local: dict[str, ast.expr]) -> frozenset[str] | None:
    if isinstance(value, ast.Name) and value.id in local:
        return keys(local[value.id], local)
    if not isinstance(value, ast.Dict):
        return None
    found: set[str] = set()
    for key, inner in zip(value.keys, value.values, strict=True):
        more = keys(inner, local) if key is None else frozenset({str(getattr(key, "value", ""))})
        if more is None:
            return None
        found |= more
    return frozenset(found)


def logged() -> dict[str, Line]:
    """The events of the code; one that is logged in several places has what all of them say."""
    found: dict[str, Line] = {}
    for place, scope, call in calls():
        for name in names(place, call):
            said, known = Line(level(call), fields(scope, call)), found.get(name)
            found[name] = (
                said
                if known is None
                else Line(_both(known.levels, said.levels), _both(known.fields, said.fields))
            )
    return found


def _both(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    return None if one is None or other is None else one | other


def test_every_event_of_the_code_is_on_the_page_and_no_other():
    assert set(listed()) == set(logged())


def test_the_page_names_the_fields_that_the_code_writes_and_no_others():
    page = listed()
    wrong = {
        name: sorted(line.fields.symmetric_difference(page[name].fields or ()))
        for name, line in logged().items()
        if line.fields is not None and page[name].fields != line.fields
    }
    assert wrong == {}


def test_the_page_names_the_level_that_the_code_uses():
    page = listed()
    wrong = {
        name: sorted(line.levels)
        for name, line in logged().items()
        if line.levels is not None and page[name].levels != line.levels
    }
    assert wrong == {}


def test_few_fields_are_computed():
    """A new place that computes its fields escapes the comparison: write them out instead."""
    assert {name for name, line in logged().items() if line.fields is None} == {"http.listening"}
