"""The dashboard: what Grafana needs to import it, and what a person needs to read it."""

import re
from itertools import combinations
from typing import Any

import pytest
from support.deployed import dashboard

PANELS = dashboard()["panels"]
SHOWN = [panel for panel in PANELS if panel["type"] != "row"]
ROWS = [panel for panel in PANELS if panel["type"] == "row"]
UNITS = {"short", "s", "reqps", "cps", "percentunit", "bytes"}


def test_it_can_be_imported_anywhere():
    found = dashboard()
    assert found["uid"] == "scheduled-events-bridge"
    assert found["schemaVersion"] >= 36
    assert "id" not in found, "Grafana assigns it"
    assert [one["name"] for one in found["templating"]["list"]] == ["datasource", "job", "instance"]
    assert not re.search(r"https?://", str(found)), "no host of ours"


def test_the_rows_are_questions_in_the_order_in_which_one_asks():
    assert [one["title"] for one in ROWS] == [
        "Is the fleet healthy?",
        "What is Azure about to do?",
        "Does it arrive? Delivery by sink",
        "Do approvals work?",
        "How are the processes?",
    ]
    assert PANELS[0]["type"] == "row"


def test_no_panel_covers_another_and_none_leaves_the_page():
    def cells(panel: dict[str, Any]) -> set[tuple[int, int]]:
        at = panel["gridPos"]
        assert 0 <= at["x"] < at["x"] + at["w"] <= 24
        return {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }

    for one, other in combinations(PANELS, 2):
        assert not cells(one) & cells(other), (one["title"], other["title"])
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)


@pytest.mark.parametrize("panel", SHOWN, ids=lambda panel: f"{panel['id']} {panel['title']}")
def test_a_panel_says_what_it_shows_in_which_unit_of_the_chosen_bridges(panel):
    assert panel["type"] in {"stat", "timeseries", "table", "bargauge"}
    assert panel["description"].endswith(".")
    if panel["type"] != "table":
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert [target["refId"] for target in panel["targets"]] == list("ABC"[: len(panel["targets"])])
    for target in panel["targets"]:
        assert target["datasource"] == panel["datasource"]
        names = re.findall(r"\b(?:seb|process)_\w+(\{[^}]*\})?", target["expr"])
        assert all('job=~"$job", instance=~"$instance"' in one for one in names)
        if len(panel["targets"]) > 1:
            assert target["legendFormat"]


def test_no_panel_has_a_line_for_each_bridge_of_a_fleet():
    for panel in SHOWN:
        for target in panel["targets"]:
            bounded = re.match(r"(sum|max|min|count|topk|quantile|histogram_quantile|ALERTS)\b", target["expr"])  # fmt: skip
            assert bounded, target["expr"]
