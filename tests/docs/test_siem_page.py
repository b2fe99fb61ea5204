"""The pages about SIEMs show what the code does."""

import re
from dataclasses import astuple
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.world import published

import bridge.core.severity
from bridge.plugins import Severity, read_format
from bridge.plugins.formats import find_format, installed_formats
from bridge.plugins.sinks import find_sink

DOCS = Path(__file__).parents[2] / "docs"
FORMATS = (DOCS / "formats.md").read_text(encoding="utf-8")
SIEM = (DOCS / "siem.md").read_text(encoding="utf-8")
STARTED = published()["azure.scheduledevents.started.v1"]


@pytest.mark.parametrize("name", ["cef", "leef"])
def test_the_page_shows_a_line_as_the_code_writes_it(name):
    line = find_format(name).open(read_format(name)).encode(STARTED).decode()
    assert f"```\n{line.replace(version('scheduled-events-bridge'), '0.1.0')}\n```" in FORMATS


def test_the_page_has_a_row_and_a_section_for_each_format():
    for name in installed_formats():
        assert re.search(rf"^\| (\[`{name}`\]\(#|`{name}` )", FORMATS, re.MULTILINE), name


def test_the_page_has_the_whole_severity_table():
    rows = {each for each in vars(bridge.core.severity).values() if isinstance(each, Severity)}
    shown = re.findall(r"\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", FORMATS, re.MULTILINE)
    assert {tuple(map(int, row)) for row in shown} == {astuple(row) for row in rows}


def sinks_in(page: str) -> dict[str, dict[str, Any]]:
    blocks = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    return {name: sink for block in blocks for name, sink in block.get("sinks", {}).items()}


@pytest.mark.parametrize("name", sinks_in(SIEM))
def test_a_recipe_is_a_configuration_that_is_accepted(name):
    sink = sinks_in(SIEM)[name]
    assert find_sink(sink["type"]).settings.model_validate(sink).describe()
