"""The benchmarks themselves are not run here; what they say about figures is."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from bench.__main__ import GROUPS
from bench.figure import NO_BAR, Figure
from bench.plots import draw
from bench.report import BEGIN, END, PAGE, table, updated

ROOT = Path(__file__).parents[1]


def figure(group: str = "storm", name: str = "kafka", **more: Any) -> Figure:
    given: dict[str, Any] = {
        "baseline": [10, 20, 30],
        "bridge": [30, 40, 60],
        "unit": "ms",
        "bar": 2,
    }
    return Figure(group, name, **given | more)


def test_a_ratio_is_the_median_of_the_bridge_by_the_median_of_the_baseline():
    assert figure().ratio == 2
    assert figure().met
    assert not figure(bar=1.9).met


def test_a_figure_that_has_to_reach_its_bar_misses_it_below():
    assert figure(bar=2, at_least=True).met
    assert not figure(bar=2.1, at_least=True).met


def test_a_figure_without_baseline_is_judged_by_itself():
    absolute = figure(baseline=[], bridge=[1, 3, 2], unit="%", bar=2, absolute=True)
    assert absolute.ratio == 2
    assert absolute.spread == (1, 3)
    assert "≤ 2 %" in table([absolute])


def test_the_spread_compares_samples_of_the_same_round():
    assert figure().spread == (2, 3)


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_says_what_it_measures_and_has_a_plot_on_the_page(group):
    module = importlib.import_module(f"bench.groups.{group}")
    assert module.__doc__
    assert callable(module.figures)
    assert f"(images/performance/{group}.svg)" in PAGE.read_text(encoding="utf-8")


def test_an_unknown_group_gets_one_sentence_and_exit_code_2():
    command = [sys.executable, "-m", "bench", "--only", "storms"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert re.fullmatch(r"There is no group 'storms'; the groups are start, .*\.\n", done.stderr)


def test_figures_of_one_group_replace_only_the_rows_of_that_group():
    page = f"before\n{BEGIN}\n{END}\nafter\n"
    page = updated(page, [figure("storm"), figure("growth", "size")], GROUPS)
    page = updated(page, [figure("start", "first poll"), figure("storm", "mqtt")], GROUPS)
    rows = [line.split(" | ")[:2] for line in page.splitlines() if line.startswith("| ")]
    assert rows[2:] == [["| start", "first poll"], ["| storm", "mqtt"], ["| growth", "size"]]
    assert page.startswith("before\n")
    assert page.endswith("\nafter\n")


def test_a_plot_shows_each_figure_with_its_bar():
    plot = ET.fromstring(draw("storm", [figure(), figure(bar=1), figure(bar=NO_BAR)]))
    classes = [element.get("class") for element in plot.iter()]
    assert classes.count("bar") == 2
    assert [name for name in classes if name in {"dot", "missed", "beside"}] == [
        "dot",
        "missed",
        "beside",
    ]
