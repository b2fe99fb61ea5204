"""The page about logs lists every event that the code logs, with its fields, and no other."""

import ast
import re
from collections.abc import Iterator
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
    "event.": TRANSITIONS,
    "approval.": get_args(OutcomeKind),
    "sink.": get_args(SinkState),
    "http.": ("token_refused", "certificate_refused"),
}
"""Names that the code puts together from a prefix and one of these."""


def listed() -> dict[str, set[str]]:
    """The events of the page, each with its fields."""
    found: dict[str, set[str]] = {}
    for line in PAGE.splitlines():
        if line.startswith("| `"):
            events, _, fields, _ = line.strip("| ").split(" | ", 3)
            names = set(re.findall(r"`(\w+)`", fields))
            found |= dict.fromkeys(re.findall(r"`([^`]+)`", events), names)
    return found


def calls() -> Iterator[tuple[str, ast.Call]]:
    for package in ("bridge", "sinks"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    owner = node.func.value
                    if (
                        isinstance(owner, ast.Name)
                        and owner.id == "log"
                        and node.func.attr in LEVELS
                    ):
                        yield path.relative_to(ROOT).as_posix(), node


def logged() -> dict[str, set[str]]:
    """The events of the code whose name is written out, with the fields that are."""
    found: dict[str, set[str]] = {}
    for _, call in calls():
        names = [each.value for each in call.args if isinstance(each, ast.Constant)]
        extra = next((one.value for one in call.keywords if one.arg == "extra"), None)
        keys = extra.keys if isinstance(extra, ast.Dict) else []
        fields = {str(key.value) for key in keys if isinstance(key, ast.Constant)}
        for name in names:
            if isinstance(name, str) and NAME.fullmatch(name):
                found.setdefault(name, set()).update(fields)
    return found


def composed() -> set[str]:
    return {f"{prefix}{end}" for prefix, ends in COMPOSED.items() for end in ends}


def test_every_event_of_the_code_is_on_the_page_and_no_other():
    assert set(listed()) == set(logged()) | composed()


def test_the_page_names_every_field_that_the_code_writes_out():
    lacking = {name: fields - listed()[name] for name, fields in logged().items()}
    assert {name: fields for name, fields in lacking.items() if fields} == {}


def test_a_name_is_put_together_in_the_places_that_are_known():
    """A new place that composes names must be added to COMPOSED."""
    places = [path for path, call in calls() if not _is_written_out(call)]
    assert sorted(places) == [
        "bridge/approvals/publisher.py",
        "bridge/delivery/dispatcher.py",
        "bridge/source/announcements.py",
        "bridge/web/access/authentication.py",
    ]


def _is_written_out(call: ast.Call) -> bool:
    return any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in call.args)
