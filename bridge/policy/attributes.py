"""The headers of a message: the attributes of a CloudEvent, however a transport writes them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bridge.common.signatures import HEADERS, ID
from bridge.common.spelling import marks_cloudevent
from bridge.core.cloudevent import PREFIX

MessageHeaders = Sequence[tuple[str, bytes]]
CONTENT_TYPE = "content-type"
REQUIRED = ("specversion", "id", "source", "type")
_PREFIXED = re.compile(r"ce[_-](.*)", re.DOTALL)
_TRACE = "traceparent"
_OTHERS = frozenset({CONTENT_TYPE, *HEADERS})


@dataclass(frozen=True, slots=True)
class MessageHead:
    """What the headers of one message say; each may occur only once.

    `attributes` are those of a binary CloudEvent. They count if there is any sign of one.
    """

    content_type: str
    webhook_id: str | None
    attributes: Mapping[str, str]

    @classmethod
    def read(cls, headers: MessageHeaders) -> "MessageHead":
        """Raises ValueError with the reason."""
        plain, attributes = dict[str, str](), dict[str, str]()
        unprefixed = any(_is_bare_sign(name, value) for name, value in headers)
        for spelled, value in headers:
            name = spelled.lower()
            if name in {CONTENT_TYPE, ID}:
                _add(plain, name, value, name)
            elif (attribute := attribute_of(name, unprefixed=unprefixed)) is not None:
                _add(attributes, attribute, value, name)
        return cls(plain.get(CONTENT_TYPE, ""), plain.get(ID), attributes)


def attribute_of(name: str, *, unprefixed: bool) -> str | None:
    """The attribute that a header carries: `ce_id` and `ce-id` are `id`.

    MQTT has no prefix, so with a bare sign of a CloudEvent each header is an attribute.
    """
    if (found := _PREFIXED.fullmatch(name)) is not None:
        return found[1]
    return name if unprefixed and name not in _OTHERS else None


def matters(name: str) -> bool:
    """Whether an approval, or its trace, may depend on the header of this name."""
    lower = name.lower()
    return lower in {*_OTHERS, *REQUIRED, _TRACE} or marks_cloudevent(lower)


def is_ours(kind: Any) -> bool:
    """Whether it is a type of the bridge's own CloudEvents, approvals included."""
    return isinstance(kind, str) and kind.casefold().startswith(PREFIX)


def has_sign(fields: Mapping[str, Any]) -> bool:
    """Whether the fields at the top of a body show that it is a CloudEvent."""
    return is_ours(fields.get("type")) or any(marks_cloudevent(name) for name in fields)


def _is_bare_sign(spelled: str, value: bytes) -> bool:
    name = spelled.lower()
    if _PREFIXED.fullmatch(name):
        return False
    ours = name == "type" and is_ours(value.decode("utf-8", "replace"))
    return ours or marks_cloudevent(name)


def _add(found: dict[str, str], name: str, value: bytes, header: str) -> None:
    if name in found:
        raise ValueError(f"the header {header[:40]} occurs twice")
    try:
        found[name] = value.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"the header {header[:40]} is not UTF-8") from None
