"""What is due when: the list of appointments that drives the simulated world."""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(order=True, slots=True)
class Appointment:
    """Something to do at a certain time, unless it is canceled before."""

    when: datetime
    number: int
    action: Callable[[], object] = field(compare=False)
    canceled: bool = field(default=False, compare=False)


class Agenda:
    """Appointments by time; those at the same time in the order in which they were made."""

    def __init__(self) -> None:
        self._heap: list[Appointment] = []
        self._numbers = itertools.count()

    def at(self, when: datetime, action: Callable[[], object]) -> Appointment:
        appointment = Appointment(when, next(self._numbers), action)
        heapq.heappush(self._heap, appointment)
        return appointment

    def next(self) -> datetime | None:
        """When the next appointment is due; None when there is none."""
        while self._heap and self._heap[0].canceled:
            heapq.heappop(self._heap)
        return self._heap[0].when if self._heap else None

    def run(self, now: datetime) -> None:
        """Run all appointments that are due, including those made meanwhile."""
        while (when := self.next()) is not None and when <= now:
            heapq.heappop(self._heap).action()
