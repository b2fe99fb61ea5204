"""Fields that would be skipped although their sender meant something by them.

A mistyped hold must not count as an approval, and a vote for one VM must not count for all.
"""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from bridge.common.spelling import one_slip, plain
from bridge.policy.votes import DECISIONS

FIELDS = frozenset(
    {"eventId", "approver", "resource", "decision", "reason", "seen", "id", "StartRequests"}
)
_ATTRIBUTES = frozenset(
    {"specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema"}
    | {"data", "data_base64"}
)
_MEANINGFUL = ("decision", "resource", "seen", "approver", "eventId", "StartRequests")
_MEANINGFUL_ATTRIBUTES = ("decision", "resource", "seen")
_VERBS = frozenset({*DECISIONS, "approved", "held", "released"})
_SIMILAR = 0.8
_SHOWN = 40


def misread(data: Mapping[str, Any]) -> str | None:
    """What is wrong with the fields that an approval does not have, in a sentence; or None."""
    return _first(data, FIELDS, _MEANINGFUL)


def misread_attribute(attributes: Mapping[str, Any]) -> str | None:
    """The same for a CloudEvent's extension attributes: a vote belongs into its data."""
    return _first(attributes, _ATTRIBUTES, _MEANINGFUL_ATTRIBUTES)


def _first(
    fields: Mapping[str, Any], known: frozenset[str], meaningful: Sequence[str]
) -> str | None:
    for name, value in fields.items():
        if name in known:
            continue
        if (meant := _meant(name, meaningful)) is not None:
            return f"the field {name[:_SHOWN]!r} is unknown; did you mean {meant}?"
        if _decides(name, value):
            return (
                f"the field {name[:_SHOWN]!r} is unknown, and says approve, hold or release; "
                "only decision may"
            )
    return None


def _meant(name: str, meaningful: Sequence[str]) -> str | None:
    """The field whose name is the same in another case, or but for one slip."""
    found = plain(name)
    for word in meaningful:
        if one_slip(found, plain(word)):
            return word
    return "decision" if _resembles(found, "decision") else None


def _resembles(name: str, word: str) -> bool:
    """Whether most of the letters agree; lengths that rule it out are not compared."""
    longest = len(word) * (2 / _SIMILAR - 1)
    return len(name) <= longest and SequenceMatcher(None, name, word).ratio() >= _SIMILAR


def _decides(name: str, value: Any) -> bool:
    """Whether the field, or anything in it, is called or says what only a decision may say.

    Without recursion: anyone may send deep JSON.
    """
    rest: list[tuple[str, Any]] = [(name, value)]
    while rest:
        name, value = rest.pop()
        if plain(name) in _VERBS:
            return True
        if isinstance(value, str) and value.strip().casefold() in DECISIONS:
            return True
        if isinstance(value, Mapping):
            rest.extend(value.items())
        elif isinstance(value, list):
            rest.extend(("", one) for one in value)
    return False
