"""Which topics and topic filters MQTT allows, and whether two of them may overlap."""

import re
from itertools import zip_longest

from bridge.plugins import Place

LONGEST = 65535
"""Bytes of UTF-8, as in every string of MQTT."""
_ROOM = 1024
"""Room for placeholders: each stands for a name of at most 128 characters."""
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def validate_topic(template: str, *more: str) -> str:
    """Return *template*. Raises ValueError when it is not a topic to publish to.

    *more* names placeholders in addition to those of `Place`.
    """
    if re.search(r"[+#]", template):
        raise ValueError(f"{template!r} contains a wildcard (+ or #); name one topic")
    return _validate(template, *more)


def validate_filter(template: str, *more: str) -> str:
    """Return *template*. Raises ValueError when it is not a topic filter."""
    levels = _validate(template, *more).split("/")
    for place, level in enumerate(levels):
        alone = level in {"+", "#"} or not re.search(r"[+#]", level)
        if not alone or (level == "#" and place < len(levels) - 1):
            raise ValueError(f"{template!r}: + must be a whole level, and # the last level")
    return template


def _validate(template: str, *more: str) -> str:
    if not template:
        raise ValueError("a topic must not be empty")
    if template.startswith("$"):
        raise ValueError(f"{template!r} begins with $, which is reserved for the server")
    if _FORBIDDEN.search(template):
        raise ValueError("a topic must not contain control characters")
    if len(template.encode()) > LONGEST - _ROOM:
        raise ValueError(f"a topic has at most {LONGEST - _ROOM} bytes")
    return Place.validate(template, *more)


def may_meet(one: str, other: str) -> bool:
    """Whether two templates can mean the same topic; wildcards and placeholders match anything."""
    for a, b in zip_longest(one.split("/"), other.split("/")):
        if "#" in {a, b}:  # also at the end of the other: a/# matches a as well
            return True
        if a is None or b is None or not _levels_may_meet(a, b):
            return False
    return True


def _levels_may_meet(a: str, b: str) -> bool:
    if "+" in {a, b}:
        return True
    if not _PLACEHOLDER.search(a) or not _PLACEHOLDER.search(b):
        return bool(_pattern(a).fullmatch(b) or _pattern(b).fullmatch(a))
    (start, end), (other_start, other_end) = _ends(a), _ends(b)
    return (start.startswith(other_start) or other_start.startswith(start)) and (
        end.endswith(other_end) or other_end.endswith(end)
    )


def _pattern(level: str) -> re.Pattern[str]:
    return re.compile(".+".join(re.escape(part) for part in _PLACEHOLDER.split(level)))


def _ends(level: str) -> tuple[str, str]:
    """What comes before the first placeholder and after the last."""
    parts = _PLACEHOLDER.split(level)
    return parts[0], parts[-1]
