"""Pages can be read in a terminal, and can be found from the README."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]
LONGEST = 120
ONE_LINK = re.compile(r"\s*(?:[-*] )?\[[^\]]*\]\([^)]*\)[.,;:]?")


def prose(page: str) -> Iterator[tuple[int, str]]:
    """The numbered lines that are neither code, nor a table, nor one long link."""
    fenced = False
    for number, line in enumerate(page.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.lstrip().startswith("|") and not ONE_LINK.fullmatch(line):
            yield number, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_line_of_prose_is_too_long(page: Path):
    lines = prose(page.read_text(encoding="utf-8"))
    assert [number for number, line in lines if len(line) > LONGEST] == []


def test_prose_is_what_is_neither_code_nor_a_table_nor_a_link():
    page = "text\n```\ncode\n```\n| a | b |\n[link](https://example.com)\nmore [link](x)\n"
    assert list(prose(page)) == [(1, "text"), (7, "more [link](x)")]


def test_the_glossary_has_each_word_once():
    words = re.findall(r"\*\*(.+?)\*\* ?[|,]", (DOCS / "glossary.md").read_text(encoding="utf-8"))
    assert len(words) > 40
    assert len(words) == len(set(words))


def test_the_readme_links_every_page():
    listed = README.read_text(encoding="utf-8").split("## Documentation")[1]
    pages = [f"docs/{page.name}" for page in sorted(DOCS.glob("*.md"))]
    assert len(pages) > 15
    assert [page for page in pages if f"]({page})" not in listed] == []


def test_the_changelog_says_each_thing_once():
    page = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for section in page.split("\n### ")[1:]:
        items = re.findall(r"(?m)^- \*\*(.+?)[.:]?\*\*", section)
        assert [item for item in items if items.count(item) > 1] == []
