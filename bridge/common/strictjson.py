"""Read foreign JSON strictly: UTF-8, and no number that the journal or a reader cannot store."""

import json
import math
from collections.abc import Mapping
from typing import Any


def decode(body: bytes, *, unique: bool = False) -> Any:
    """Read JSON, or raise ValueError with the reason; NaN and numbers above 64 bits are wrong.

    With *unique* a name that occurs twice in one object is wrong too.
    """
    try:
        return json.loads(
            body.decode("utf-8-sig"),
            object_pairs_hook=_once if unique else None,
            parse_constant=_refuse,
            parse_float=_finite,
            parse_int=_whole,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_object(body: bytes) -> Mapping[str, Any]:
    """The object in foreign JSON; an empty one when it is no object, or not JSON."""
    try:
        found = decode(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice in one object")
    return found


def _refuse(text: str) -> float:
    raise ValueError(f"{text[:20]} is not a number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _whole(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f"the number {text[:20]}… is too large")
    return int(text)
