"""One CloudEvent as the journal keeps it and sinks get it: JSON, and what routing needs of it."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """A CloudEvent in the structured JSON format, `data` as an object.

    `key` is the `partitionkey`: order is kept among CloudEvents that share it.
    """

    id: str
    type: str
    key: str
    body: bytes

    @classmethod
    def decode(cls, body: bytes) -> "CloudEvent":
        """Read back what we wrote ourselves; never use it on foreign input."""
        envelope = json.loads(body)
        return cls(envelope["id"], envelope["type"], envelope["partitionkey"], body)

    @property
    def envelope(self) -> dict[str, Any]:
        """Attributes and data as one object, as in `body`; a fresh one at each call."""
        decoded: dict[str, Any] = json.loads(self.body)
        return decoded

    @property
    def attributes(self) -> dict[str, Any]:
        """All context attributes and extensions, without the data."""
        envelope = self.envelope
        del envelope["data"]
        return envelope

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = self.envelope["data"]
        return data
