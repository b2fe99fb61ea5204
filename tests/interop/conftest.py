"""Tests against software that nobody here wrote: `make test-interop` runs them, and writes the matrix.

Other runs leave this folder out, unless you name it: setting up takes minutes the first time.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import compatibility
from support.compatibility import Seen

Proves = Callable[[str, str, str, str], None]
_seen: list[Seen] = []
_other: list[str] = []


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = any("interop" in argument for argument in config.args)
    return True if collection_path.name.startswith("test_") and not named else None


@pytest.fixture
def proves(record_property: Callable[[str, object], None]) -> Proves:
    """`proves(group, software, version, direction)`: what a test shows if it passes."""

    def note(group: str, software: str, version: str, direction: str) -> None:
        record_property("interop", [group, software, version, direction])

    return note


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" and report.passed:
        return
    found: list[Any] = [what for name, what in report.user_properties if name == "interop"]
    _seen.extend(Seen._make([*what, report.outcome]) for what in found)
    if not report.passed:
        _other.append(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the page after a complete run in which everything was there and worked."""
    asked = os.environ.get("COMPATIBILITY") == "write"
    if asked and _seen and not _other and not hasattr(session.config, "workerinput"):
        compatibility.write(_seen)
