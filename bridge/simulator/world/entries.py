"""One scheduled event of the simulated world, and how the truth describes it."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from bridge.core.model import STARTED, ScheduledEvent
from bridge.simulator.world.agenda import Appointment
from bridge.simulator.world.building_blocks import DESCRIPTIONS, NewEvent, Update
from bridge.simulator.world.truth import write_time


@dataclass(slots=True, eq=False)
class Entry:
    """A current scheduled event, with what only the world knows about it."""

    name: str
    life: int
    plan: NewEvent
    event: ScheduledEvent
    announced: datetime
    not_before: datetime
    approved_at: datetime | None = None
    next: Appointment | None = None

    @property
    def event_id(self) -> str:
        return self.event.event_id

    @property
    def status(self) -> str:
        return self.event.status

    def stop(self) -> None:
        """Cancel what was to happen next."""
        if self.next is not None:
            self.next.canceled = True
            self.next = None

    def facts(self) -> dict[str, Any]:
        """All fields, under the names of the truth and the control API."""
        event = self.event
        return {
            "eventId": event.key,
            "life": self.life,
            "name": self.name,
            "eventType": event.event_type,
            "status": event.status,
            "eventSource": event.event_source,
            "resources": list(event.resources),
            "notBefore": write_time(self.not_before),
            "description": event.description,
            "durationInSeconds": event.duration,
            "approved": self.approved_at is not None,
        }


def first_state(
    plan: NewEvent, *, event_id: str, not_before: datetime, first_vm: str
) -> ScheduledEvent:
    """The scheduled event as it is announced."""
    return ScheduledEvent(
        event_id=event_id,
        event_type=plan.wire_type or plan.type,
        status=plan.status,
        resources=(first_vm,) if plan.resources is None else tuple(plan.resources),
        not_before=None if plan.status == STARTED else not_before,
        resource_type="VirtualMachine",
        description=_description(plan),
        event_source=plan.source,
        duration=plan.duration,
        extra=plan.extra,
    )


def _description(plan: NewEvent) -> str:
    if plan.description is not None:
        return plan.description
    who = " as requested by authorized user" if plan.source == "User" else ""
    what = DESCRIPTIONS.get(plan.type, f"Virtual machine is affected by {plan.type}")
    return f"{what}{who}."


def changed(event: ScheduledEvent, asked: Update) -> ScheduledEvent:
    """The scheduled event with the fields of *asked*."""
    given = asked.model_dump(exclude={"event", "type"}, exclude_none=True)
    if asked.type is not None:
        given["event_type"] = asked.type
    if asked.resources is not None:
        given["resources"] = tuple(asked.resources)
    return replace(event, **given)
