"""Text that fits: on one line, into a number of bytes, in whole characters."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

ELLIPSIS = "…"

_HALF_AN_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\\Z")
_UNSAFE = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}
"""What JSON leaves as it is, but a terminal obeys or a reader takes for the end of a line."""


def cut(value: str, most: int) -> str:
    """At most that many bytes of UTF-8, and an ellipsis if it was cut.

    Neither a character nor an escape that begins with a backslash is cut in half.
    """
    encoded = value.encode()
    if len(encoded) <= most:
        return value
    kept = encoded[: most - len(ELLIPSIS.encode())].decode(errors="ignore")
    return _HALF_AN_ESCAPE.sub(r"\1", kept).rstrip() + ELLIPSIS


def listed(names: Sequence[str], most: int, missing: int = 0) -> str:
    """As many whole names as fit, with commas, and how many more there are: `a,b,+3`."""
    room = most - len(f",+{len(names) + missing}")
    kept: list[str] = []
    for name in names:
        room -= len(name.encode()) + 1
        if room < 0:
            break
        kept.append(name)
    left = len(names) - len(kept) + missing
    return ",".join([*kept, f"+{left}"] if left else kept)


def filled(value: Any) -> Any:
    """The same object without what is None or empty, all the way down; lists stay as they are."""
    if not isinstance(value, dict):
        return value
    inner = {name: filled(each) for name, each in value.items()}
    return {name: each for name, each in inner.items() if each not in (None, "", [], {})}


def as_json(value: Any) -> bytes:
    """One line of JSON, whatever characters a reader takes for the end of a line."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return escape_unsafe(written).encode()


def escape_unsafe(text: str) -> str:
    r"""The same text, with DEL, C1 control characters and Unicode line ends as in `\u0085`."""
    return text.translate(_UNSAFE)


class Pairs:
    """Collects pairs in order, leaves out empty ones, and remembers what it had to cut."""

    def __init__(self, clean: Callable[[str], str], most: Mapping[str, int], usual: int) -> None:
        self.values: dict[str, str] = {}
        self.short: list[str] = []
        self._clean = clean
        self._most = most
        self._usual = usual

    def put(self, key: str, value: str | int | None, label: str | None = None) -> None:
        whole = self._clean("" if value is None else str(value))
        self._keep(key, whole, cut(whole, self._room(key)), label)

    def put_names(
        self, key: str, names: Sequence[str], missing: int, label: str | None = None
    ) -> None:
        """A list with commas; *missing* counts those that were cut before."""
        clean = [self._clean(name) for name in names]
        self._keep(key, ",".join(clean), listed(clean, self._room(key), missing), label)

    def _room(self, key: str) -> int:
        return self._most.get(key, self._usual)

    def _keep(self, key: str, whole: str, fitting: str, label: str | None) -> None:
        if not fitting:
            return
        if fitting != whole:
            self.short.append(key)
        self.values[key] = fitting
        if label:
            self.values[f"{key}Label"] = label
