"""Faults on demand: which kinds there are, and which are live."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from bridge.common.fields import Duration, Size
from bridge.simulator.world.agenda import Agenda, Appointment
from bridge.simulator.world.building_blocks import Part, SignedDuration

Kind = Literal[
    "status",
    "throttle",
    "unauthorized",
    "forbidden",
    "not-modified",
    "redirect",
    "empty",
    "garbage",
    "wrong-shape",
    "truncated",
    "oversized",
    "reset",
    "delay",
    "skew",
]
Category = Literal["scheduledevents", "instance", "versions", "identity"]
ADDED = ("delay", "skew")
"""Kinds that do not change the answer itself, so that they combine with others."""


class Fault(Part):
    """One fault, and the requests it hits. Without `for` and `count` it stays until cleared."""

    model_config = ConfigDict(populate_by_name=True)

    kind: Kind
    name: str | None = None
    lasting: Duration | None = Field(None, alias="for", description="divided by the speed")
    count: int | None = Field(None, ge=1, description="how many requests it hits")
    chance: float = Field(1.0, gt=0, le=1, description="the probability that it hits a request")
    paths: tuple[Category, ...] = ("scheduledevents",)
    methods: list[Literal["GET", "POST"]] | None = None
    vms: list[str] | None = None
    processed: bool = Field(
        default=False, description="the request takes effect; only its answer is damaged"
    )
    status: int | None = Field(None, ge=200, le=599)
    retry_after: int | None = Field(None, ge=0, description="seconds, as on the wire")
    delay: Duration = Field(30.0, description="divided by the speed")
    skew: SignedDuration = Field(300.0, description="of the Date header, as on the wire")
    size: Size = Field(32 * 1024**2, description="of an oversized body")
    location: str = "/redirected"

    @model_validator(mode="after")
    def _status_belongs(self) -> Self:
        if self.status is not None and self.kind not in {"status", "redirect"}:
            raise ValueError(f"status needs kind status or redirect, not {self.kind}")
        return self


@dataclass(slots=True, eq=False)
class LiveFault:
    """A fault that is in force."""

    name: str
    fault: Fault
    left: int | None
    end: Appointment | None = None

    def hits(self, method: str, path: str, vm: str) -> bool:
        fault = self.fault
        return (
            path in fault.paths
            and (fault.methods is None or method in fault.methods)
            and (fault.vms is None or vm.casefold() in (name.casefold() for name in fault.vms))
        )


class Faults:
    """The faults in force. `tell(what, live)` is called when one begins and when one ends."""

    def __init__(
        self, agenda: Agenda, *, seed: int, speed: float, tell: Callable[[str, LiveFault], None]
    ) -> None:
        self.live: list[LiveFault] = []
        self._agenda = agenda
        self._speed = speed
        self._tell = tell
        self._dice = random.Random(seed)
        self._made = 0

    def add(self, fault: Fault, now: datetime) -> LiveFault:
        self._made += 1
        live = LiveFault(fault.name or f"{fault.kind}-{self._made}", fault, fault.count)
        if fault.lasting is not None:
            over = now + timedelta(seconds=fault.lasting / self._speed)
            live.end = self._agenda.at(over, lambda: self._remove(live))
        self.live.append(live)
        self._tell("fault-begun", live)
        return live

    def clear(self, name: str | None = None) -> int:
        """End the faults with that name, or all; return how many there were."""
        ending = [live for live in self.live if name in (None, live.name)]
        for live in ending:
            self._remove(live)
        return len(ending)

    def hit(self, method: str, path: str, vm: str) -> list[Fault]:
        """The faults that hit this request: all that combine, and the first of the others."""
        met: list[Fault] = []
        for live in list(self.live):
            spoilt = any(fault.kind not in ADDED for fault in met)
            if not live.hits(method, path, vm) or (spoilt and live.fault.kind not in ADDED):
                continue
            if live.fault.chance == 1.0 or self._dice.random() < live.fault.chance:
                met.append(live.fault)
                self._count(live)
        return met

    def _count(self, live: LiveFault) -> None:
        if live.left is not None:
            live.left -= 1
            if live.left == 0:
                self._remove(live)

    def _remove(self, live: LiveFault) -> None:
        if live in self.live:
            self.live.remove(live)
            if live.end is not None:
                live.end.canceled = True
            self._tell("fault-ended", live)
