"""The runbook has a section for each alert, bad line in the log, reason and exit code, and no other."""

import re
from pathlib import Path

import pytest
from support.deployed import alerts

from bridge.runtime.runbook import ANCHORS, PAGE, link
from bridge.runtime.status import ListenerStatus, SinkStatus, Status
from bridge.web.health.readiness import HealthView, Remark, readiness

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
PARTS = ("What it means", "What is at stake", "Look at", "Do")


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


SECTIONS = {
    slug(part.split("\n", 1)[0]): part.split("\n", 1)[1] for part in TEXT.split("\n## ")[1:]
}
PROBLEMS = {anchor: text for anchor, text in SECTIONS.items() if "| signs |" in text}


def signs(section: str, kind: str) -> list[str]:
    found = re.search(rf"^\| {kind} \| (.*) \|$", section, re.MULTILINE)
    return re.findall(r"`([^`]+)`", found[1]) if found else []


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [line.strip("| ").split(" | ") for line in lines]


@pytest.mark.parametrize("anchor", PROBLEMS)
def test_a_section_says_what_it_means_what_is_at_stake_where_to_look_and_what_to_do(anchor):
    places = [PROBLEMS[anchor].find(f"\n**{part}.**") for part in PARTS]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize("name", alerts())
def test_an_alert_links_to_the_section_that_names_it(name):
    anchor = alerts()[name]["annotations"]["runbook_url"].removeprefix(f"{PAGE}#")
    assert name in signs(PROBLEMS[anchor], "alerts")
    index = {
        alert: place for names, place in rows(SECTIONS["find-the-section"])[1:]
        for alert in re.findall(r"`(Seb\w+)`", names)
    }  # fmt: skip
    assert f"(#{anchor})" in index[name]


def test_no_section_names_an_alert_that_does_not_exist():
    named = [name for section in PROBLEMS.values() for name in signs(section, "alerts")]
    assert sorted(named) == sorted(alerts())


def bad_lines() -> set[str]:
    """The log events of level warning or worse, by the page about logs."""
    page = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
    found = set()
    for cells in rows(page):
        if cells[0].startswith("`") and {"warning", "error"} & set(cells[1].split(", ")):
            found |= set(re.findall(r"`([^`]+)`", cells[0]))
    return found


def test_each_bad_line_of_the_log_is_in_one_section():
    named = [name for section in PROBLEMS.values() for name in signs(section, "log")]
    named += [cells[0].strip("`") for cells in rows(SECTIONS["other-lines-in-the-log"])[1:]]
    assert len(bad_lines()) > 35
    assert sorted(named) == sorted(bad_lines())


def remarks() -> list[Remark]:
    """Every reason and every note that there can be."""
    found: list[Remark] = []
    for state, source in (("unavailable", "unavailable"), ("stopped", "connected"), ("untried", "connected")):  # fmt: skip
        status = Status(
            sinks={"a": SinkStatus("kafka", required=True, state=state)},  # type: ignore[arg-type]  # one of its states
            listeners={"b": ListenerStatus("kafka", source, heard=0.0)},  # type: ignore[arg-type]  # one of its states
            journal_losses=1,
        )
        status.source.clock_skew, status.source.skewed = 90.0, True
        view = HealthView(
            status, 1000.0, 1.0, "own", None, "the disk is full", "journal.db.corrupt-1"
        )
        said = readiness(view)
        found += [*said.reasons, *said.notes]
    return list({one.topic: one for one in found}.values())


def test_no_reason_of_the_code_is_left_out():
    code = (ROOT / "bridge" / "web" / "health" / "readiness.py").read_text(encoding="utf-8")
    written = re.findall(r'\bRemark\(.*"([a-z-]+)"\)', code)
    assert len(written) == len(re.findall(r"\bRemark\(", code))
    assert {one.topic for one in remarks()} == set(written)


@pytest.mark.parametrize("remark", remarks(), ids=lambda one: one.topic)
def test_a_reason_links_to_the_section_that_names_it(remark: Remark):
    what = re.sub(r" \w$", " NAME", remark.what)
    assert what in signs(PROBLEMS[ANCHORS[remark.topic]], "readiness")
    assert f"| `{what}` |" in SECTIONS["find-the-section"]
    assert remark.as_json()["runbook"] == link(remark.topic)


def test_no_section_names_a_reason_that_does_not_exist():
    known = {re.sub(r" \w$", " NAME", one.what) for one in remarks()}
    assert {one for text in PROBLEMS.values() for one in signs(text, "readiness")} == known
    places = [(ANCHORS[one.topic], re.sub(r" \w$", " NAME", one.what)) for one in remarks()]
    named = [(a, one) for a, text in PROBLEMS.items() for one in signs(text, "readiness")]
    assert set(named) == set(places)


def test_every_exit_code_is_there():
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    listed = [cells[0] for cells in rows(page.split("## Exit codes")[1].split("\n## ")[0])[1:]]
    assert [cells[0] for cells in rows(SECTIONS["exit-codes"])[1:]] == listed
    assert "78" in listed


def test_every_link_leads_to_a_section():
    linked = re.findall(r"\]\(#([^)]+)\)", TEXT)
    assert set(linked) <= set(SECTIONS)
    assert set(ANCHORS.values()) <= set(SECTIONS)
    assert set(PROBLEMS) <= set(ANCHORS.values())
    for page, anchor in re.findall(r"\]\(([\w-]+\.md)#([^)]+)\)", TEXT):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        assert anchor in {slug(heading) for heading in headings}, f"{page}#{anchor}"
