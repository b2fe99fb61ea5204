"""What a drill may be: the requested plan, and the made-up event that follows from it."""

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from bridge.common.fields import Duration, Settings
from bridge.core.model import SCHEDULED, ScheduledEvent

NOTICE = {"Freeze": 900.0, "Reboot": 900.0, "Redeploy": 600.0, "Preempt": 30.0, "Terminate": 300.0}
"""The event types, each with the notice that Azure gives."""
LEAST_NOTICE, MOST_NOTICE = 1.0, 24 * 3600.0
MOST_DURATION = 900.0
_MOST_RESOURCES = 100
_LONGEST_NAME = 256
_LONGEST_TEXT = 400
_PREFIX = "Drill: "


def _known_type(value: object) -> object:
    found = [name for name in NOTICE if isinstance(value, str) and name.lower() == value.lower()]
    if not found:
        raise ValueError(f"must be one of {', '.join(NOTICE)}")
    return found[0]


def _between(least: float, most: float, limits: str) -> AfterValidator:
    def check(seconds: float) -> float:
        if not least <= seconds <= most:
            raise ValueError(f"must be from {limits}")
        return seconds

    return AfterValidator(check)


def _line(most: int) -> AfterValidator:
    def check(text: str) -> str:
        if not text.strip() or not text.isprintable() or len(text) > most:
            raise ValueError(f"must be one line of at most {most} characters that is not empty")
        return text.strip()

    return AfterValidator(check)


def _different(names: tuple[str, ...]) -> tuple[str, ...]:
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(name.casefold(), name)
    return tuple(first.values())


class Plan(Settings):
    """What to rehearse. The default notice is Azure's; the default resource is this VM."""

    event_type: Annotated[str, BeforeValidator(_known_type)] = Field(alias="eventType")
    notice: Annotated[Duration, _between(LEAST_NOTICE, MOST_NOTICE, "1s to 24h")] | None = None
    duration: Annotated[Duration, _between(0.0, MOST_DURATION, "0s to 15m")] | None = None
    description: Annotated[str, _line(_LONGEST_TEXT)] | None = None
    resources: Annotated[
        tuple[Annotated[str, _line(_LONGEST_NAME)], ...],
        Field(max_length=_MOST_RESOURCES),
        AfterValidator(_different),
    ] = ()

    @property
    def seconds(self) -> float:
        return NOTICE[self.event_type] if self.notice is None else self.notice


_SAID = {
    "missing": f"is required: one of {', '.join(NOTICE)}",
    "extra_forbidden": "is not an option of a drill",
    "string_type": "must be text",
    "tuple_type": "must be a list",
}


def complaint(error: ValidationError) -> tuple[str, str]:
    """The first problem of a plan: its key, and the rest of a sentence."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = [str(part) for part in first["loc"] if isinstance(part, int) or part.isalpha()]
    said = _SAID.get(first["type"], first["msg"].removeprefix("Value error, "))
    return (".".join(where), said) if where else ("it", "must be a JSON object")


def made_up(plan: Plan, event_id: str, resources: tuple[str, ...], now: datetime) -> ScheduledEvent:
    """A scheduled event as Azure would announce it; its description begins with `Drill:`."""
    about = plan.description or f"a rehearsal of {plan.event_type}; nothing will happen."
    return ScheduledEvent(
        event_id=event_id.upper(),
        event_type=plan.event_type,
        status=SCHEDULED,
        resources=resources,
        not_before=now + timedelta(seconds=plan.seconds),
        resource_type="VirtualMachine",
        description=f"{_PREFIX}{about}",
        event_source="Platform",
        duration=-1 if plan.duration is None else plan.duration,
    )
