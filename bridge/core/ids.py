"""Deterministic ids, and attribute values that every SDK and transport reads the same way."""

import hashlib
import json
import re
from datetime import UTC, datetime
from functools import lru_cache
from uuid import UUID, uuid5

from bridge.core.model import ScheduledEvent

NAMESPACE = UUID("3a6e8a52-6f0b-5c7e-9d43-1b0c5f2a7e61")
"""Part of version 1 of the contract: with another namespace every id would change."""

_UNSAFE = re.compile(r"[^A-Za-z0-9\-._~/:()]")
_PLAIN_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def identify(*parts: str) -> str:
    """The same parts give the same id, after a restart and on every VM."""
    return str(uuid5(NAMESPACE, "\x1f".join(parts)))


def digest(event: ScheduledEvent) -> str:
    """SHA-256 of the fields that `updated` reports; the order of Resources does not matter."""
    described = (event.event_type, event.description, event.duration)
    return _digest(event.not_before, event.resources, *described)


@lru_cache(maxsize=256)
def _digest(
    not_before: datetime | None,
    resources: tuple[str, ...],
    event_type: str,
    description: str | None,
    duration: float | None,
) -> str:
    """Events that Azure announces together are often alike, and each is asked about repeatedly."""
    due = timestamp(not_before) if not_before else None
    state = [due, sorted(set(resources)), event_type, description, number(duration)]
    text = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def number(value: float | None) -> float | None:
    """Write 5.0 and 5 the same way: they are the same number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@lru_cache(maxsize=256)
def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC, with milliseconds only if they are not zero."""
    moment = moment.astimezone(UTC)
    precision = "milliseconds" if moment.microsecond // 1000 else "seconds"
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


@lru_cache(maxsize=16)
def safe_name(value: str) -> str:
    """Replace characters that transports disagree on; part of a hash keeps the names distinct."""
    cleaned = _UNSAFE.sub("_", value)
    if cleaned == value:
        return value
    original = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{cleaned}~{original[:8]}"


def safe_id(value: str) -> str:
    """An EventId or approval id as an attribute or topic level; unusual ones become a hash."""
    if _PLAIN_ID.fullmatch(value):
        return value
    return f"sha256-{hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()}"
