"""What the operator approves in advance: rules that cast this VM's vote automatically."""

from collections.abc import Iterable
from typing import Self

from pydantic import Field, model_validator

from bridge.common.fields import Duration, Settings, write_duration
from bridge.core.model import ScheduledEvent
from bridge.policy.allow import Globs, Name, matches

_CONDITIONS = ("event_source", "event_type", "max_duration", "resources")


class Auto(Settings):
    """When all of its conditions apply, this VM's vote is cast. It never overrides a hold."""

    event_source: Name | None = Field(None, description="Platform or User")
    event_type: Name | None = Field(None, description="a glob over Freeze, Reboot, …")
    max_duration: Duration | None = Field(
        None, description="longest interruption that Azure expects; an unknown one never matches"
    )
    resources: Globs | None = Field(None, description="globs over the VMs to vote for")
    all_resources: bool = Field(
        default=False, description="vote for all VMs of the event, not only for this one"
    )

    @model_validator(mode="after")
    def _says_when(self) -> Self:
        if all(getattr(self, name) is None for name in _CONDITIONS):
            raise ValueError(f"needs at least one of {', '.join(_CONDITIONS)}")
        return self

    def __str__(self) -> str:
        """Finish the sentence "Automatically approves …"."""
        which = [
            f"whose source is {self.event_source}" if self.event_source else "",
            "" if self.max_duration is None else _takes(self.max_duration),
        ]
        parts = [
            "scheduled events",
            f"of type {self.event_type}" if self.event_type else "",
            " and ".join(filter(None, which)),
        ]
        where = f", on VMs like {' or '.join(self.resources)}" if self.resources else ""
        whom = "all VMs of the event" if self.all_resources else "this VM"
        return f"{' '.join(filter(None, parts))}{where} (for {whom})"


def _takes(seconds: float) -> str:
    return f"that take at most {write_duration(seconds) if seconds else 'no time'}"


def applies(rule: Auto, event: ScheduledEvent, vm_name: str) -> bool:
    """Whether *rule* votes for *event* on the VM of that name."""
    if not event.names(vm_name):
        return False
    if rule.event_source and (event.event_source or "").casefold() != rule.event_source.casefold():
        return False
    if rule.event_type and not matches(event.event_type, [rule.event_type]):
        return False
    if rule.max_duration is not None and not _within(event.duration, rule.max_duration):
        return False
    voted_for = event.resources if rule.all_resources else [vm_name]
    return rule.resources is None or all(matches(one, rule.resources) for one in voted_for)


def _within(duration: float | None, most: float) -> bool:
    """Whether the duration is short enough; an unknown one (null or negative) never is."""
    return duration is not None and 0 <= duration <= most


def chosen(rules: Iterable[Auto], event: ScheduledEvent, vm_name: str | None) -> str | None:
    """The VM to vote for: this one, or "" for all of them; None when no rule applies."""
    if vm_name is None:
        return None
    found = [rule for rule in rules if applies(rule, event, vm_name)]
    if not found:
        return None
    return "" if any(rule.all_resources for rule in found) else vm_name
