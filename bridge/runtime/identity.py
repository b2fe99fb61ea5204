"""Which VM this is: read from instance metadata, remembered in the journal."""

import json
import logging
import time
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from bridge.common.supervise import ceiling
from bridge.config import Config
from bridge.core.model import Instance
from bridge.journal import Journal
from bridge.metadata.answers import SourceProblem
from bridge.metadata.client import Metadata
from bridge.plugins import Place

if TYPE_CHECKING:
    from bridge.core.observer import Observer

log = logging.getLogger(__name__)

_ASK_AGAIN = 15.0
_SELDOM = 900.0
_REFRESH = 24 * 3600.0


@dataclass(slots=True)
class Identity:
    """What is known about this VM so far; the bridge works without it, and reports that."""

    config: Config
    journal: Journal
    instance: Instance = field(default_factory=Instance)
    _ask_at: float = 0.0
    _failures: int = 0
    _written: int | None = None

    @property
    def vm_name(self) -> str | None:
        return self.config.source.vm_name or self.instance.name

    @property
    def observer(self) -> "Observer":
        from bridge.core.observer import Observer  # noqa: PLC0415  nothing is published before the first poll

        return Observer(
            instance=self.instance,
            vm_name=self.vm_name,
            source=self.config.cloudevents.source,
            margin=timedelta(seconds=self.config.approvals.margin),
            tags=self.config.source.tags,
            labels=self.config.source.labels,
        )

    @property
    def place(self) -> Place:
        return place(self.vm_name, self.instance, self.config.source.scope)

    async def recall(self) -> None:
        """Start with what the journal remembers."""
        text = await self.journal.run(lambda store: store.recall("instance"))
        if text is None:
            return
        try:
            self.instance = Instance(**json.loads(text))
        except (ValueError, TypeError) as error:
            log.warning("instance.discarded", extra={"error": str(error)})
            return
        self._written = self.journal.generation

    async def learn(self, metadata: Metadata) -> None:
        """Ask instance metadata when it is due; a failure changes nothing."""
        if self._written not in (None, self.journal.generation):
            await self._accept(self.instance)
        if time.monotonic() < self._ask_at:
            return
        answer = await metadata.instance()
        if isinstance(answer, SourceProblem):
            # Each request delays a poll, so a failing one is sent less and less often.
            self._failures += 1
            self._ask_at = time.monotonic() + ceiling(
                self._failures, first=_ASK_AGAIN, most=_SELDOM
            )
            if self._failures == 1:
                log.warning(
                    "instance.unknown", extra={"detail": answer.detail, "scope": self._scope()}
                )
            return
        self._failures = 0
        self._ask_at = time.monotonic() + _REFRESH
        await self._accept(answer)

    def _scope(self) -> str:
        return "as configured" if self.vm_name else "all, until the VM's name is known"

    async def _accept(self, instance: Instance) -> None:
        if instance.vm_id is not None:
            await self.journal.claim(instance.vm_id)
        if instance != self.instance:
            self.instance = instance
            log.info("instance.identified", extra={"vm": self.vm_name, "vm_id": instance.vm_id})
        elif self._written == self.journal.generation:
            return
        self._written = self.journal.generation
        text = json.dumps(asdict(instance))
        await self.journal.run(lambda store: store.remember(instance=text))
        self.journal.announce()  # sinks were entered without these names


def place(vm_name: str | None, instance: Instance, scope: Literal["own", "all"] = "own") -> Place:
    """The values of placeholders."""
    return Place(
        {
            "observer": vm_name,
            "vm_name": vm_name,
            "vm_id": instance.vm_id,
            "subscription": instance.subscription,
            "resource_group": instance.resource_group,
            "location": instance.location,
        },
        scope=scope,
    )
