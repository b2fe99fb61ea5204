"""RFC 5424: a CloudEvent's header, structured data and text, and their framing."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bridge.plugins import CloudEvent, Rejected, class_id, severity
from sinks.syslog.settings import FACILITIES

_NOTHING = "-"
_UNPRINTABLE = re.compile(r"[^!-~]")
_TO_ESCAPE = re.compile(r'(["\\\]])')
_TOLD = ("id", "source", "type", "subject", "correlationid", "causationid")
"""The attributes that are repeated in the structured data."""


@dataclass(frozen=True, slots=True)
class Style:
    """What all messages of a sink have in common."""

    facility: str
    app_name: str
    largest: int
    hostname: str | None = None
    enterprise_id: int | None = None

    def write(self, cloudevent: CloudEvent, text: bytes) -> bytes:
        """The whole message. Raises `Rejected` when it is too large: JSON must not be cut."""
        attributes = cloudevent.attributes
        head = f"{self._header(cloudevent, attributes)} {self._data(attributes)} "
        message = head.encode() + text
        if len(message) > self.largest:
            raise Rejected(
                f"the message has {len(message)} bytes, and max_size is {self.largest}; "
                "raise it here and at the receiver, then replay the dead letter"
            )
        return message

    def _header(self, cloudevent: CloudEvent, attributes: Mapping[str, Any]) -> str:
        priority = FACILITIES.index(self.facility) * 8 + severity(cloudevent).syslog
        fields = (
            _moment(attributes.get("time")),
            _field(self.hostname or attributes.get("observer"), 255),
            _field(self.app_name, 48),
            _field(os.getpid(), 128),
            _field(class_id(cloudevent), 32),
        )
        return f"<{priority}>1 {' '.join(fields)}"

    def _data(self, attributes: Mapping[str, Any]) -> str:
        if self.enterprise_id is None:
            return _NOTHING
        told = ((name, attributes[name]) for name in _TOLD if attributes.get(name))
        pairs = "".join(f' {name}="{_escaped(value)}"' for name, value in told)
        return f"[cloudevent@{self.enterprise_id}{pairs}]"


def _field(value: object, most: int) -> str:
    """Printable ASCII without spaces, or a dash for an unknown value."""
    return _UNPRINTABLE.sub("_", str(value or ""))[:most] or _NOTHING


def _moment(time: object) -> str:
    try:
        moment = datetime.fromisoformat(str(time))
    except ValueError:
        return _NOTHING
    if moment.tzinfo is None:
        return _NOTHING
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"


def _escaped(value: object) -> str:
    return _TO_ESCAPE.sub(r"\\\1", str(value))


def frame(message: bytes, framing: str) -> bytes:
    """RFC 6587: the length before it, or a line feed after it and none inside."""
    if framing == "octet-counting":
        return b"%d %s" % (len(message), message)
    if b"\n" in message:
        raise Rejected("the text contains a line feed; set framing: octet-counting")
    return message + b"\n"
