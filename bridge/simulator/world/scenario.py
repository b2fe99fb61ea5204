"""The scenario file as typed models, read by name or path."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from bridge.common.fields import Duration
from bridge.simulator.world.building_blocks import (
    VM,
    NewEvent,
    Part,
    Reschedule,
    Update,
    VersionText,
)
from bridge.simulator.world.faults import Fault

API_VERSIONS = (
    "2017-03-01",
    "2017-08-01",
    "2017-11-01",
    "2019-01-01",
    "2019-04-01",
    "2019-08-01",
    "2020-07-01",
)
ACTIONS = (
    "create",
    "cancel",
    "start",
    "complete",
    "reschedule",
    "update",
    "fault",
    "clear_faults",
    "disable",
)


class Unusable(ValueError):
    """The scenario cannot be played; the text says which file, which key, and what is allowed."""


class ScenarioStep(Part):
    """One action at a certain time, once or repeated."""

    at: Duration = Field(0.0, description="time since the start, divided by the speed")
    repeat: int = Field(1, ge=1, le=100_000, description="create that many: NAME-1, NAME-2, …")
    every: Duration = Field(0.0, description="between repetitions")
    create: NewEvent | None = None
    cancel: str | None = Field(None, description="the name or EventId of a scheduled event")
    start: str | None = None
    complete: str | None = None
    reschedule: Reschedule | None = None
    update: Update | None = None
    fault: Fault | None = None
    clear_faults: str | bool | None = Field(None, description="a fault's name; true: all of them")
    disable: bool | None = Field(None, description="true: as after a day of silence")

    @property
    def action(self) -> str:
        return next(name for name in ACTIONS if getattr(self, name) is not None)

    @property
    def subject(self) -> str | None:
        """The scheduled event that this step refers to, if any."""
        target = getattr(self, self.action)
        if isinstance(target, Reschedule | Update):
            return target.event
        return target if self.action in {"cancel", "start", "complete"} else None

    @model_validator(mode="after")
    def _one_action(self) -> Self:
        given = [name for name in ACTIONS if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise ValueError(f"a step must have exactly one of {', '.join(ACTIONS)}, not {found}")
        if self.repeat > 1 and self.create is None:
            raise ValueError("repeat is allowed only with create")
        return self


class Scenario(Part):
    """A group of VMs, how the service behaves for them, and what happens when."""

    name: str = "quiet"
    description: str = ""
    subscription: str = "8d10da13-8125-4ba9-a717-bf7490507b3d"
    resource_group: str = "simulated"
    location: str = "westeurope"
    vms: list[VM] = Field(default_factory=lambda: [VM(name="vm-0")], min_length=1)
    strict: bool = Field(default=False, description="enforce minimum notice and pending limit")
    incarnation: int = Field(1, ge=0, description="the first one, also after the feature was off")
    first_call_delay: Duration = 0.0
    events_delay: Duration = Field(0.0, description="from enabling until events appear")
    disable_after: Duration = Field(86400.0, gt=0, description="silence that disables the feature")
    rate_limit: int | None = Field(None, ge=1, description="real requests per second and VM")
    token_lifetime: Duration = 86400.0
    api_versions: list[VersionText] = Field(default_factory=lambda: list(API_VERSIONS))
    approve_unknown: int = Field(400, ge=200, le=599, description="status for an unknown EventId")
    approve_stale: int = Field(
        200, ge=200, le=599, description="status for a stale DocumentIncarnation of 2017-03-01"
    )
    script: list[ScenarioStep] = Field(default_factory=list)

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        vms = [vm.name.casefold() for vm in self.vms]
        if len(set(vms)) < len(vms):
            raise ValueError("two entries in vms have the same name")
        known = {name.casefold() for step in self.script for name in _made_by(step)}
        for number, step in enumerate(self.script, 1):
            if step.subject is not None and step.subject.casefold() not in known:
                raise ValueError(
                    f"step {number} of script: no step creates {step.subject!r}; "
                    f"choose from {', '.join(sorted(known)) or 'nothing'}"
                )
            for name in (step.fault and step.fault.vms) or ():
                if name.casefold() not in vms:
                    raise ValueError(
                        f"step {number} of script: there is no VM {name!r}; choose from "
                        f"{', '.join(vm.name for vm in self.vms)}"
                    )
        return self

    def renamed(self, name: str) -> Self:
        """The same scenario with another name for the first VM, also in the events' resources."""
        first = self.vms[0]
        steps = [_rename(step, first.name, name) for step in self.script]
        vms = [first.model_copy(update={"name": name}), *self.vms[1:]]
        return self.model_copy(update={"vms": vms, "script": steps})


def _made_by(step: ScenarioStep) -> Iterator[str]:
    if step.create is None:
        return
    if step.create.event_id:
        yield step.create.event_id
    if step.create.name:
        yield from names_of(step)


def names_of(step: ScenarioStep) -> list[str]:
    """The names of the events that a create step makes; an unnamed one has only its EventId."""
    name = step.create.name if step.create else None
    if name is None or step.repeat == 1:
        return [name] if name else []
    return [f"{name}-{number}" for number in range(1, step.repeat + 1)]


def _rename(step: ScenarioStep, old: str, new: str) -> ScenarioStep:
    for key in ("create", "update"):
        part = getattr(step, key)
        if part is not None and part.resources is not None:
            names = [new if name.casefold() == old.casefold() else name for name in part.resources]
            return step.model_copy(update={key: part.model_copy(update={"resources": names})})
    return step


def shipped() -> list[str]:
    """The names of the scenarios in the package."""
    folder = files("bridge.simulator") / "scenarios"
    return sorted(item.name[:-5] for item in folder.iterdir() if item.name.endswith(".yaml"))


def load(name_or_path: str | Path) -> Scenario:
    """Read a shipped scenario by its name, or a file by its path, or raise `Unusable`."""
    if str(name_or_path) in shipped():
        text = (files("bridge.simulator") / "scenarios" / f"{name_or_path}.yaml").read_text("utf-8")
        return parse(text, where=f"shipped scenario {name_or_path}", name=str(name_or_path))
    path = Path(name_or_path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise Unusable(
            f"scenario {path}: {why}; give a file, or one of {', '.join(shipped())}"
        ) from None
    return parse(text, where=f"scenario {path}", name=path.stem)


def parse(text: str, *, where: str, name: str) -> Scenario:
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise Unusable(f"{where}: not YAML{line}: {problem}") from None
    if not isinstance(data, dict):
        raise Unusable(f"{where}: it must be a mapping with keys such as vms and script")
    try:
        return Scenario.model_validate({"name": name, **data})
    except ValidationError as error:
        raise Unusable(f"{where}: {sentence(error)}") from None


def sentence(error: ValidationError) -> str:
    """The first problem in one sentence: the key, what is wrong, what is allowed."""
    problems = error.errors(include_url=False)
    first: Any = problems[0]
    # Parts with a bracket or a type's name come from pydantic, for the branches of a union.
    place = [str(part) for part in first["loc"] if "[" not in str(part) and part not in _ARMS]
    said = first["msg"].removeprefix("Value error, ")
    here = f"{'.'.join(place)}: " if place else ""
    given = first.get("input")
    shown = f" (here it is {given!r})" if isinstance(given, str | int | float) else ""
    return f"{here}{said}{'' if first['type'] == 'value_error' else shown}"


_ARMS = ("str", "bool", "int")
