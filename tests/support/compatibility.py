"""The matrix in docs/compatibility.md: which software works with the bridge, as a run of the tests saw it."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
START, END = "<!-- matrix -->", "<!-- end of matrix -->"


class Seen(NamedTuple):
    """One line of the matrix."""

    group: str
    software: str
    version: str
    direction: str
    result: str


def table(seen: Iterable[Seen]) -> str:
    """One table for each group; what several tests saw of the same direction is one line."""
    results: dict[tuple[str, ...], set[str]] = {}
    for one in seen:
        results.setdefault(one[:4], set()).add(one.result)
    lines: list[str] = []
    for group in sorted({what[0] for what in results}):
        lines += [f"### {group}", "", "| software | version | direction | result |"]
        lines.append("|---|---|---|---|")
        for what, outcomes in sorted(results.items()):
            if what[0] == group:
                result = "fails" if "failed" in outcomes else "works"
                lines.append(f"| {' | '.join(what[1:])} | {result} |")
        lines.append("")
    return "\n".join(lines)


def write(seen: Iterable[Seen]) -> None:
    """Replace the matrix in the page; the text around it stays."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.split(START)[0], text.split(END)[1]
    PAGE.write_text(f"{before}{START}\n{table(seen)}{END}{after}", encoding="utf-8")
