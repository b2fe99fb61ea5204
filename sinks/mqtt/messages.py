"""One MQTT message, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Message:
    """`properties` are those of MQTT 5, by paho's names for them; MQTT 3.1.1 leaves them out."""

    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = False
    properties: Mapping[str, Any] = field(default_factory=dict)
