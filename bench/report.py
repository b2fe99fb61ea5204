"""Show figures as a table, keep them as JSON, and put table and plots into the docs."""

import json
import math
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bench.figure import Figure
from bench.plots import draw

_DOCS = Path(__file__).parents[1] / "docs"
PAGE = _DOCS / "performance.md"
PLOTS = _DOCS / "images" / "performance"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
_HEAD = ("group", "figure", "time", "baseline", "bridge", "ratio", "spread", "bar", "met")

_TIMES = {"s", "ms", "µs", "%", "/s"}


def table(figures: Sequence[Figure]) -> str:
    """For a terminal."""
    rows = [_HEAD, *(_cells(figure) for figure in figures)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def markdown(figures: Sequence[Figure]) -> str:
    rows = [_HEAD, ("---",) * len(_HEAD), *(_cells(figure) for figure in figures)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cells(figure: Figure) -> tuple[str, ...]:
    return (
        figure.group,
        figure.name + (f" ({figure.note})" if figure.note else ""),
        _clock(figure),
        "" if figure.absolute else _amount(statistics.median(figure.baseline), figure.unit),
        _amount(statistics.median(figure.bridge), figure.unit),
        "" if figure.absolute else f"{figure.ratio:.2f}",
        _spread(figure),
        _bar(figure),
        "" if math.isinf(figure.bar) else "yes" if figure.met else "no",
    )


def _clock(figure: Figure) -> str:
    """Which clock a time is of; nothing for what is no time."""
    if figure.unit not in _TIMES:
        return ""
    return "CPU" if figure.cpu else "wall"


def _spread(figure: Figure) -> str:
    """Nothing for a single sample."""
    low, high = figure.spread
    return f"{low:.2f} to {high:.2f}" if len(figure.bridge) > 1 else ""


def _bar(figure: Figure) -> str:
    if math.isinf(figure.bar):
        return ""
    sign = "≥" if figure.at_least else "≤"
    return f"{sign} {figure.bar:g}" + (f" {figure.unit}" if figure.absolute else "")


def _amount(value: float, unit: str) -> str:
    if abs(value) < 0.1:
        return f"{value:.1g} {unit}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def keep(figures: Sequence[Figure], file: Path) -> None:
    """Append one line of JSON, so that figures of several versions can be compared."""
    run = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "figures": [
            asdict(figure) | {"bar": _number(figure.bar), "ratio": figure.ratio, "met": figure.met}
            for figure in figures
        ],
    }
    with file.open("a") as opened:
        opened.write(json.dumps(run) + "\n")


def _number(bar: float) -> float | None:
    return None if math.isinf(bar) else bar


def publish(figures: Sequence[Figure], order: Sequence[str]) -> None:
    """Replace the rows and plots of the groups that were measured; *order* is of all groups."""
    PLOTS.mkdir(parents=True, exist_ok=True)
    groups = dict.fromkeys(figure.group for figure in figures)
    for group in groups:
        chosen = [figure for figure in figures if figure.group == group]
        (PLOTS / f"{group}.svg").write_text(draw(group, chosen))
    PAGE.write_text(updated(PAGE.read_text(), figures, order))


def updated(page: str, figures: Sequence[Figure], order: Sequence[str]) -> str:
    """The page with these figures in its table; rows of other groups stay."""
    head, rest = page.split(BEGIN)
    known, tail = rest.split(END)
    fresh = {figure.group for figure in figures}
    kept = [line for line in known.splitlines() if _group(line) not in {*fresh, None}]
    rows = "\n".join(_in_order(kept, markdown(figures).splitlines(), order))
    return f"{head}{BEGIN}\n\n{rows}\n\n{END}{tail}"


def _group(line: str) -> str | None:
    """The group of a row of the table; None for what is not a row, or its head."""
    cells = line.split(" | ")
    name = cells[0].removeprefix("| ")
    return name if len(cells) == len(_HEAD) and name not in {_HEAD[0], "---"} else None


def _in_order(kept: Sequence[str], fresh: Sequence[str], order: Sequence[str]) -> list[str]:
    """The head, and the rows of earlier runs and of this one in the order of the groups."""
    head, rows = fresh[:2], [*kept, *fresh[2:]]
    return [*head, *sorted(rows, key=lambda row: order.index(_group(row) or order[0]))]
