"""How results are printed: tables, times, and values that are safe on a terminal."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

_STEPS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_MOST_NAMES = 3


def printable(value: object) -> str:
    """The value with all non-printing characters escaped: it came from elsewhere."""
    text = "-" if value is None else str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Aligned columns, two spaces apart; the last column has no fixed width."""
    lines = [list(heads), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    padded = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{line.rstrip()}\n" for line in padded)


def pairs(items: Iterable[tuple[str, object]]) -> str:
    """One line per name and value."""
    known = list(items)
    width = max(len(name) for name, _ in known)
    return "".join(f"{name.ljust(width)}  {printable(value)}\n" for name, value in known)


def as_json(value: Any) -> str:
    """JSON in plain ASCII, which is also safe on a terminal."""
    return json.dumps(value, indent=2) + "\n"


def clock(text: str | None, now: datetime) -> str:
    """`18:29:47Z (in 12m)`, with the date if it is another day; `-` for no time."""
    if text is None:
        return "-"
    moment = datetime.fromisoformat(text).astimezone(UTC)
    shown = f"{moment:%H:%M:%SZ}" if moment.date() == now.date() else f"{moment:%Y-%m-%d %H:%M:%SZ}"
    return f"{shown} ({_relative((moment - now).total_seconds())})"


def age(text: str | None, now: datetime) -> str:
    """`3m`: how long ago; `-` for no time."""
    if text is None:
        return "-"
    return _span(max(0.0, (now - datetime.fromisoformat(text)).total_seconds()))


def names(values: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(values) - _MOST_NAMES
    shown = ", ".join(values[:_MOST_NAMES]) or "-"
    return f"{shown} +{more}" if more > 0 else shown


def yes_no(value: bool | None) -> str:  # noqa: FBT001  it is the value to print
    return {True: "yes", False: "no", None: "unknown"}[value]


def _relative(seconds: float) -> str:
    if abs(seconds) < 1:
        return "now"
    return f"in {_span(seconds)}" if seconds > 0 else f"{_span(-seconds)} ago"


def _span(seconds: float) -> str:
    for size, unit in _STEPS:
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return "0s"
