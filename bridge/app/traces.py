"""The export of traces: starts, replaces and stops it as the configuration says."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bridge.common.supervise import supervise
from bridge.config import TelemetrySettings
from bridge.runtime.runtime import Runtime

if TYPE_CHECKING:
    from bridge.telemetry.exporter import Exporter

FLUSH_WITHIN = 1.0
"""How long the bridge may wait for the receiver of its last spans before it ends."""


@dataclass(slots=True)
class TraceExport:
    """At most one exporter; its libraries are loaded when there is one, in a thread."""

    runtime: Runtime
    group: asyncio.TaskGroup
    _settings: TelemetrySettings | None = None
    _exporter: "Exporter | None" = None
    _task: asyncio.Task[None] | None = None

    async def configure(self) -> None:
        """Export to where the current configuration says, if anywhere."""
        settings = self.runtime.config.telemetry
        if settings == self._settings:
            return
        await self._end()
        self._settings = settings
        self.runtime.tracing.switch(on=settings.otlp is not None)
        self._exporter = await self._built(settings)
        if self._exporter is not None:
            work = supervise("telemetry", self._exporter.run)
            self._task = self.group.create_task(work, name="telemetry")

    async def close(self) -> None:
        """Stop, and send what is left if the receiver is there."""
        await self._end()
        tracing = self.runtime.tracing
        if self._exporter is None and tracing.on and tracing.waiting:
            self._exporter = await self._built(self.runtime.config.telemetry)
        if self._exporter is not None:
            await self._exporter.flush(FLUSH_WITHIN)

    async def _built(self, settings: TelemetrySettings) -> "Exporter | None":
        if settings.otlp is None:
            return None
        exporter = await asyncio.to_thread(_exporter)
        return exporter(self.runtime.tracing, settings.otlp, settings.headers, self._resource)

    def _resource(self) -> Mapping[str, str]:
        """Which process on which VM the spans are of."""
        instance = self.runtime.identity.instance
        known = {
            "service.name": "scheduled-events-bridge",
            "service.version": self.runtime.version,
            "service.instance.id": instance.vm_id,
            "host.id": instance.vm_id,
            "host.name": self.runtime.identity.vm_name,
            "cloud.provider": "azure",
            "cloud.account.id": instance.subscription,
            "cloud.region": instance.location,
        }
        return {name: value for name, value in known.items() if value}

    async def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._task = None


def _exporter() -> "type[Exporter]":
    from bridge.telemetry.exporter import Exporter  # noqa: PLC0415  only with traces

    return Exporter
