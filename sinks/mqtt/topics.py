"""Which topics and topic filters MQTT takes, and whether two of them may meet."""

import re
from itertools import zip_longest

from bridge.plugins import Place

LONGEST = 65535
"""Bytes of UTF-8, as in every string of MQTT."""
_ROOM = 1024
"""What placeholders may need at most: each stands for a name of 128 characters or fewer."""
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def validate_topic(template: str, *more: str) -> str:
    """Return *template*, or raise ValueError when nothing can be published there.

    *more* names placeholders beyond those of `Place`.
    """
    if re.search(r"[+#]", template):
        raise ValueError(f"{template!r} holds a wildcard, + or #; one publishes to one topic")
    return _validate(template, *more)


def validate_filter(template: str, *more: str) -> str:
    """Return *template*, or raise ValueError when one cannot subscribe to it; wildcards may be."""
    levels = _validate(template, *more).split("/")
    for place, level in enumerate(levels):
        alone = level in {"+", "#"} or not re.search(r"[+#]", level)
        if not alone or (level == "#" and place < len(levels) - 1):
            raise ValueError(f"{template!r}: + is a whole level, and # is the last")
    return template


def _validate(template: str, *more: str) -> str:
    if not template:
        raise ValueError("a topic is not empty")
    if template.startswith("$"):
        raise ValueError(f"{template!r} begins with $, which is the server's own")
    if _FORBIDDEN.search(template):
        raise ValueError("a topic holds no control characters")
    if len(template.encode()) > LONGEST - _ROOM:
        raise ValueError(f"a topic has at most {LONGEST - _ROOM} bytes")
    return Place.validate(template, *more)


def may_meet(one: str, other: str) -> bool:
    """Whether two templates can lead to the same topic; wildcards and placeholders are anything."""
    for a, b in zip_longest(one.split("/"), other.split("/")):
        if "#" in {a, b}:  # also where the other is over: a/# stands for a as well
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
    """What stands before the first placeholder, and behind the last."""
    parts = _PLACEHOLDER.split(level)
    return parts[0], parts[-1]
