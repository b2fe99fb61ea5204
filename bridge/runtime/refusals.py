"""The latest refused votes that this bridge does not publish, so that an operator can see them."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from bridge.core.cloudevent import CloudEvent

MOST = 100


class UnpublishedRefusal(NamedTuple):
    """A refusal as a CloudEvent. Unless it is a stray, another bridge may publish it."""

    cloudevent: CloudEvent
    stray: bool


@dataclass(slots=True)
class UnpublishedRefusals:
    """In memory and limited in number: anyone who may publish on a bus can cause them."""

    total: int = 0
    _latest: deque[UnpublishedRefusal] = field(default_factory=lambda: deque(maxlen=MOST))

    def add(self, cloudevent: CloudEvent, *, stray: bool) -> None:
        """Keep a refusal; the oldest one makes room for it."""
        self.total += 1
        self._latest.append(UnpublishedRefusal(cloudevent, stray))

    def latest(self) -> list[UnpublishedRefusal]:
        """All that are kept, the newest first."""
        return list(reversed(self._latest))

    def strays_after(self, number: int) -> list[CloudEvent]:
        """The strays that came after the first *number* refusals, the oldest first."""
        new = min(self.total - number, len(self._latest))
        found = list(self._latest)[len(self._latest) - new :]
        return [one.cloudevent for one in found if one.stray]
