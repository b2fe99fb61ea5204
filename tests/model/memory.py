"""What a bridge has in memory: copied to try another step, and compared to recognize a state."""

import asyncio
from dataclasses import fields, is_dataclass
from types import MethodType
from typing import Any

from model.operations import SteppedJournal
from pydantic import BaseModel

from bridge.common.clock import Clock
from bridge.runtime.status import Status

_SHARED = (BaseModel, Clock, Status)
"""What never changes, or what no decision in the model depends on."""
_NOTES = frozenset(
    {"_seen", "_snapshot_due", "_tidy_at", "_logged", "_unlogged", "_wake_at", "status", "runtime",
     "metadata", "azure", "sleep", "budget", "_verifier", "_outage", "_idle"}
)  # fmt: skip
"""What no decision depends on, or what is compared on its own: the rules, and when it wakes."""
_names: dict[type, tuple[str, ...] | None] = {}


def _fields(value: Any) -> tuple[str, ...] | None:
    """The fields of a dataclass that can change; None for anything else."""
    kind = type(value)
    if kind not in _names:
        frozen = not is_dataclass(kind) or kind.__dataclass_params__.frozen  # type: ignore[attr-defined]  # not typed
        _names[kind] = None if frozen else tuple(one.name for one in fields(kind))
    return _names[kind]


def copied(value: Any, known: dict[int, Any]) -> Any:
    """A copy that shares nothing that can change; nothing may wait for a lock in it."""
    if id(value) in known:
        return known[id(value)]
    made: Any = value
    if isinstance(value, MethodType):
        made = MethodType(value.__func__, copied(value.__self__, known))
    elif isinstance(value, dict):
        made = {key: copied(one, known) for key, one in value.items()}
    elif isinstance(value, SteppedJournal):
        made = value.copied()
    elif isinstance(value, asyncio.Lock | asyncio.Event):
        made = _copied_flag(value)
    elif not isinstance(value, _SHARED) and (names := _fields(value)) is not None:
        made = known[id(value)] = object.__new__(type(value))
        for name in names:
            object.__setattr__(made, name, copied(getattr(value, name), known))
    known[id(value)] = made
    return made


def _copied_flag(value: asyncio.Lock | asyncio.Event) -> asyncio.Lock | asyncio.Event:
    if isinstance(value, asyncio.Lock):
        if value.locked():
            raise ValueError("a bridge at rest has a locked lock")
        return asyncio.Lock()
    made = asyncio.Event()
    if value.is_set():
        made.set()
    return made


def described(value: Any, seen: set[int]) -> str:
    """Equal texts for memories that no decision can tell apart."""
    if isinstance(value, asyncio.Lock):
        return f"locked={value.locked()}"
    if isinstance(value, asyncio.Event):
        return f"set={value.is_set()}"
    if isinstance(value, _SHARED):
        return str(id(value))
    if isinstance(value, dict):
        return str({key: described(one, seen) for key, one in value.items()})
    names = _fields(value)
    if names is None:
        return _written(value)
    if id(value) in seen:
        return ""
    seen.add(id(value))
    return str([(n, described(getattr(value, n), seen)) for n in names if n not in _NOTES])


def _written(value: Any) -> str:
    text = repr(value)
    if " at 0x" in text:
        raise ValueError(f"two of these would never be equal: {text}")
    return text
