"""The page about security names tests, and each of them exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
TEST = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


def test_every_test_that_the_page_names_exists():
    files = list((ROOT / "tests").rglob("test_*.py"))
    existing = {name for path in files for name in TEST.findall(path.read_text(encoding="utf-8"))}
    existing |= {path.name for path in files} | {
        path.relative_to(ROOT).as_posix() for path in files
    }
    named = set(re.findall(r"`((?:tests/[\w/]+/)?test_\w+(?:\.py)?)`", PAGE))
    assert len(named) > 50
    assert named - existing == set()


def test_every_threat_has_a_defense_and_a_test():
    rows = [
        line.strip("| ").split(" | ")
        for line in PAGE.splitlines()
        if re.search(r"`(tests/[\w/]+/)?test_", line)
    ]
    threats = [row for row in rows if len(row) > 1]
    assert len(threats) > 30
    assert [row[0] for row in threats if not 3 <= len(row) <= 4] == []


def test_every_fuzz_target_of_the_security_tests_is_on_the_page():
    marked = re.compile(r"^@pytest\.mark\.fuzz\n(?:[@ )}].*\n)*def (test_\w+)", re.MULTILINE)
    files = (ROOT / "tests" / "security").glob("test_fuzz_*.py")
    targets = {name for path in files for name in marked.findall(path.read_text(encoding="utf-8"))}
    assert len(targets) >= 7
    assert {name for name in targets if f"`{name}`" not in PAGE} == set()


def test_the_policy_says_how_to_report_without_an_address_that_may_be_wrong():
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "private vulnerability reporting" in policy
    assert re.findall(r"\S+@\S+|https?://\S+|mailto:", policy) == []
    linked = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", policy)]
    assert [link for link in linked if not (ROOT / link).exists()] == []
