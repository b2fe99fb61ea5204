"""Kills, faults and damage as POSIX systems have them, with time enough on a busy machine."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

if sys.platform == "win32":
    collect_ignore_glob = ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(120))
