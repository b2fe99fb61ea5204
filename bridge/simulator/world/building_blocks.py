"""The building blocks of a scenario file: a base with helpful errors, events, VMs."""

import difflib
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from bridge.common.fields import Duration, Settings, parse_duration

EventStatus = Literal["Scheduled", "Started"]

MINIMUM_NOTICE: dict[str, float] = {
    "Freeze": 900.0,
    "Reboot": 900.0,
    "Redeploy": 600.0,
    "Preempt": 30.0,
    "Terminate": 300.0,
}
DESCRIPTIONS = {
    "Freeze": "Host server is undergoing maintenance",
    "Reboot": "Virtual machine is going to be restarted",
    "Redeploy": "Virtual machine is being moved to another host",
    "Preempt": "Spot virtual machine is being evicted",
    "Terminate": "Virtual machine is being deleted",
}


class Part(Settings):
    """A part of a scenario; the error for a wrong key suggests the nearest right one."""

    @model_validator(mode="before")
    @classmethod
    def _know_all_keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        allowed = [field.alias or name for name, field in cls.model_fields.items()]
        for key in data:
            if key not in allowed and key not in cls.model_fields:
                near = difflib.get_close_matches(str(key), allowed, n=1)
                hint = f"did you mean {near[0]!r}? " if near else ""
                raise ValueError(f"unknown key {key!r}; {hint}choose from {', '.join(allowed)}")
        return data


def _signed(value: object) -> float:
    if isinstance(value, str) and value.strip().startswith("-"):
        return -parse_duration(value.strip()[1:])
    return parse_duration(value)


def _no_slip(name: str) -> str:
    """Any type, for what Azure may add; but not one that is a known type with a slip in it."""
    known = {each.casefold(): each for each in MINIMUM_NOTICE}
    near = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=0.9)
    if near and name != known[near[0]]:
        raise ValueError(f"{name!r} is not an event type; did you mean {known[near[0]]!r}?")
    return name


EventType = Annotated[str, Field(min_length=1), AfterValidator(_no_slip)]
SignedDuration = Annotated[float, BeforeValidator(_signed)]
VersionText = Annotated[str, BeforeValidator(str)]
"""An api-version; YAML reads an unquoted one as a date."""


class NewEvent(Part):
    """A scheduled event of the scenario. Durations are divided by the speed."""

    type: EventType
    name: str | None = Field(None, description="to refer to it; if used again, the event returns")
    event_id: str | None = Field(None, min_length=1, description="default: made from name and seed")
    wire_type: str | None = Field(None, description="EventType on the wire, if not `type`")
    status: EventStatus = Field(
        "Scheduled", description="Started: no notice, as in a hardware failure"
    )
    resources: list[str] | None = Field(None, description="VM names; default: the first VM")
    notice: Duration | None = Field(None, description="default: the minimum for its type")
    started_for: Duration | None = Field(600.0, description="null: until completed by hand")
    starts_after_approval: Duration = 0.0
    source: Literal["Platform", "User"] = "Platform"
    description: str | None = None
    duration: int = Field(-1, ge=-1, description="DurationInSeconds; -1: unknown")
    extra: dict[str, Any] = Field(default_factory=dict, description="more fields on the wire")


class VM(Part):
    """One VM of the group; each has its own port."""

    name: str = Field(min_length=1)
    vm_id: str | None = None
    hostname: str | None = None
    zone: str = ""
    scale_set: str = ""
    size: str = "Standard_D2s_v5"
    tags: dict[str, str] = Field(default_factory=dict)


class Reschedule(Part):
    """Move NotBefore to `notice` from now."""

    event: str
    notice: Duration


class Update(Part):
    """Change fields of a scheduled event; fields that are not given stay."""

    event: str
    type: EventType | None = None
    resources: list[str] | None = None
    description: str | None = None
    duration: int | None = Field(None, ge=-1)
