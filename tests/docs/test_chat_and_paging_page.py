"""The recipes in docs/chat-and-paging.md and docs/formats.md work as shown."""

import json
import re
from pathlib import Path

import pytest
from support.chat_rules import PREFIX
from support.world import published

from bridge.config import load
from bridge.delivery.rules import wanted
from bridge.plugins import open_format
from bridge.plugins.formats import find_format

DOCS = Path(__file__).parents[2] / "docs"
FORMATS = (DOCS / "formats.md").read_text(encoding="utf-8")


def examples() -> list[str]:
    pages = [(DOCS / name).read_text(encoding="utf-8") for name in ("chat-and-paging.md",)]
    return [
        block
        for page in [*pages, FORMATS]
        for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    ]


@pytest.mark.parametrize("example", examples())
def test_every_recipe_loads_and_its_format_writes_every_cloudevent_that_it_selects(
    example, tmp_path
):
    file, key = tmp_path / "config.yaml", tmp_path / "key"
    key.write_text("secret")
    file.write_text(re.sub(r"/run/secrets/\S+?(?=})", str(key), example))
    for sink in load(file, {}).sinks.values():
        form = open_format(sink)
        asked = [
            each for each in published().values() if wanted(each, sink.only) and form.wants(each)
        ]
        assert asked
        for text in map(form.encode, asked):
            assert json.loads(text) if "json" in form.content_type else text


def test_there_are_recipes():
    assert len(examples()) >= 8


@pytest.mark.parametrize("kind", ["slack", "teams", "pagerduty", "template"])
def test_the_guide_names_every_format_and_every_key(kind):
    keys = find_format(kind).settings.model_fields.keys() - {"type"}
    assert f"[`{kind}`](#" in FORMATS
    assert [key for key in keys if f"| `{key}` |" not in FORMATS] == []


def test_the_guide_has_a_row_for_every_type_that_a_pager_can_get():
    page = FORMATS.split("## pagerduty")[1].split("## template")[0]
    kinds = [kind.removeprefix(PREFIX).removesuffix(".v1") for kind in published()]
    assert [kind for kind in kinds if f"`{kind}`" not in page] == []
