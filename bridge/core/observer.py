"""The observer: this VM as its CloudEvents describe it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from bridge.core.ids import safe_name
from bridge.core.model import Instance


@dataclass(frozen=True, slots=True)
class Observer:
    """This VM, and how its operator wants it described."""

    instance: Instance = field(default_factory=Instance)
    vm_name: str | None = None
    source: str | None = None
    margin: timedelta = timedelta(seconds=5)
    tags: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.vm_name or self.instance.name or "unknown"

    @property
    def identity(self) -> str:
        return self.instance.vm_id or self.name

    def events_source(self) -> str:
        """Shared by all VMs that see the same events, so that their copies are duplicates."""
        if self.source:
            return safe_name(self.source)
        sub, group = self.instance.subscription, self.instance.resource_group
        if not sub or not group:
            return "/azure/scheduledevents"
        return safe_name(f"/subscriptions/{sub}/resourceGroups/{group}/scheduledevents".lower())

    def described(self, *, affected: bool | None) -> dict[str, Any]:
        vm = self.instance
        return {
            "vm": self.vm_name or vm.name,
            "vmId": vm.vm_id,
            "affected": affected,
            "resourceId": vm.resource_id,
            "location": vm.location,
            "zone": vm.zone,
            "scaleSet": vm.scale_set,
            "hostname": vm.hostname,
            "node": None,
            "tags": {name: vm.tags[name] for name in self.tags if name in vm.tags},
            "labels": dict(self.labels),
        }
