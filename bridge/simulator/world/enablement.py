"""Whether the feature is enabled: the first request enables it, a day of silence disables it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from bridge.simulator.world.agenda import Agenda, Appointment


class Enabling:
    """Enabled or disabled for the whole group; the first answer is slow for each VM.

    `tell` is called with `enabled`, `flowing` (delayed events appear) and `disabled`.
    All durations are in real seconds.
    """

    def __init__(
        self,
        agenda: Agenda,
        *,
        first_call_delay: float,
        events_delay: float,
        disable_after: float,
        tell: Callable[[str], None],
    ) -> None:
        self.on = False
        self.flowing = events_delay == 0
        self._agenda = agenda
        self._first_call = timedelta(seconds=first_call_delay)
        self._events_delay = timedelta(seconds=events_delay)
        self._silence = timedelta(seconds=disable_after)
        self._tell = tell
        self._ready: dict[str, datetime] = {}
        self._last = datetime.min.replace(tzinfo=UTC)
        self._appointments: list[Appointment] = []

    def touch(self, vm: str, now: datetime) -> datetime:
        """Handle a VM's request: return when it may be answered."""
        self._last = now
        if not self.on:
            self._switch_on(now)
        return self._ready.setdefault(vm, now + self._first_call)

    def disable(self) -> None:
        if self.on:
            self.on = False
            self._ready.clear()
            for appointment in self._appointments:
                appointment.canceled = True
            self._appointments = []
            self._tell("disabled")

    def _switch_on(self, now: datetime) -> None:
        self.on = True
        self.flowing = not self._events_delay
        self._tell("enabled")
        self._watch(now + self._silence)
        if not self.flowing:
            self._appoint(now + self._events_delay, self._flow)

    def _appoint(self, when: datetime, action: Callable[[], None]) -> None:
        self._appointments = [*self._appointments[-1:], self._agenda.at(when, action)]

    def _flow(self) -> None:
        self.flowing = True
        self._tell("flowing")

    def _watch(self, over: datetime) -> None:
        """Check at the end of a silence: cheaper than an appointment for each request."""
        self._appoint(over, lambda: self._look(over))

    def _look(self, over: datetime) -> None:
        if self._last + self._silence > over:
            self._watch(self._last + self._silence)
        else:
            self.disable()
