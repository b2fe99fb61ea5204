"""How results are printed: tables that fit, times, and values that are safe on a terminal."""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, TextIO

_STEPS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_MOST_NAMES = 3
_WIDEST_KEY, _NARROWEST = 24, 6


def printable(value: object) -> str:
    """The value with all non-printing characters escaped: it came from elsewhere."""
    text = "-" if value is None else str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def columns(stream: TextIO | None = None) -> int | None:
    """The width of the terminal on stdout or *stream*; None in a pipe, where nothing is cut."""
    try:
        return os.get_terminal_size((stream or sys.stdout).fileno()).columns or None
    except (OSError, ValueError):
        return None


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    width: int | None = None,
    *,
    notes: bool = False,
) -> str:
    """Aligned columns, two spaces apart; the last column has no fixed width.

    To fit *width*, the widest cells are cut. With *notes*, the last column moves below its row.
    """
    lines = [list(heads), *([printable(cell) for cell in row] for row in rows)]
    below = [line.pop() for line in lines] if notes and width else [""] * len(lines)
    widths = _fitted([max(len(line[i]) for line in lines) for i in range(len(lines[0]))], width)
    text = ""
    for line, note in zip(lines, below, strict=True):
        cells = (cut(c, w).ljust(w) for c, w in zip(line, widths, strict=True))
        text += f"{'  '.join(cells).rstrip()}\n"
        if note not in {"", "-"} and line is not lines[0]:
            text += wrapped(note, width, indent=4)
    return text


def _fitted(widths: list[int], width: int | None) -> list[int]:
    """Take from the widest column until the table fits, as far as cells stay legible.

    Of two that are equally wide, the right one is cut. The first column is what a user types: it
    is cut only if it is very wide.
    """
    fitted = list(widths)
    free = range(1 if fitted[0] <= _WIDEST_KEY else 0, len(fitted))
    while width and free and sum(fitted) + 2 * (len(fitted) - 1) > width:
        widest = max(free, key=lambda at: (fitted[at], at))
        if fitted[widest] <= _NARROWEST:
            break
        fitted[widest] -= 1
    return fitted


def cut(text: str, width: int | None) -> str:
    """The beginning of a text that is too long, with an ellipsis; `+3` at its end stays."""
    if width is None or len(text) <= width:
        return text
    _, mark, count = text.rpartition(" +")
    end = f"…{mark}{count}" if mark and count.isdigit() else "…"
    return f"{text[: max(width - len(end), 0)]}{end}"


def wrapped(text: str, width: int | None, indent: int = 0) -> str:
    """The text in lines of at most *width*; the first begins at *indent*, as do the others."""
    if width is None:
        return f"{' ' * indent}{text}\n"
    from textwrap import wrap  # noqa: PLC0415  only a terminal needs it

    space = " " * indent
    lines = wrap(text, max(width - indent, 20), break_on_hyphens=False)
    return "".join(f"{space}{line}\n" for line in lines or [""])


def hanging(head: str, text: str, width: int | None) -> str:
    """*head*, and *text* beside it; its further lines begin where the first one does."""
    beside = wrapped(text, width, indent=len(head) + 2)
    return f"{head}  {beside[len(head) + 2 :]}"


def pairs(items: Iterable[tuple[str, object]], width: int | None = None) -> str:
    """Names and values, aligned; a long value is continued on the next line."""
    known = list(items)
    most = max(len(name) for name, _ in known)
    return "".join(hanging(name.ljust(most), printable(value), width) for name, value in known)


def as_json(value: Any) -> str:
    """JSON in plain ASCII, which is also safe on a terminal."""
    return json.dumps(value, indent=2) + "\n"


def clock(text: str | None, now: datetime, *, short: bool = False) -> str:
    """`18:29:47Z (in 12m)`, with the date if it is another day; `-` for no time.

    If *short*, it has no seconds.
    """
    if text is None:
        return "-"
    moment = datetime.fromisoformat(text).astimezone(UTC)
    shown = f"{moment:%H:%MZ}" if short else f"{moment:%H:%M:%SZ}"
    if moment.date() != now.date():
        shown = f"{moment:%Y-%m-%d} {shown}"
    return f"{shown} ({_relative((moment - now).total_seconds())})"


def age(text: str | None, now: datetime) -> str:
    """`3m`: how long ago; `-` for no time."""
    if text is None:
        return "-"
    return span(max(0.0, (now - datetime.fromisoformat(text)).total_seconds()))


def names(values: Sequence[str], most: int = _MOST_NAMES) -> str:
    """The first few names, and how many more there are."""
    more = len(values) - most
    shown = ", ".join(values[:most]) or "-"
    return f"{shown} +{more}" if more > 0 else shown


def yes_no(value: bool | None) -> str:  # noqa: FBT001  it is the value to print
    return {True: "yes", False: "no", None: "unknown"}[value]


def _relative(seconds: float) -> str:
    if abs(seconds) < 1:
        return "now"
    return f"in {span(seconds)}" if seconds > 0 else f"{span(-seconds)} ago"


def countdown(seconds: float) -> str:
    """`1d 04h`, `3h 12m`, `12m 03s` or `9s` left; `now` when nothing is."""
    left = int(seconds)
    if left <= 0:
        return "now"
    for (size, unit), (smaller, name) in pairwise(_STEPS):
        if left >= size:
            return f"{left // size}{unit} {left % size // smaller:02}{name}"
    return f"{left}s"


def span(seconds: float) -> str:
    """`3m`: the largest unit that fits."""
    for size, unit in _STEPS:
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "0s"
