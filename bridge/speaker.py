"""Who speaks about approvals: outcomes are counted by every bridge, and published by one."""

import logging
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bridge.cloudevent import CloudEvent
from bridge.outcomes import Outcome, outcome
from bridge.policy import Rules, turn
from bridge.runtime import Runtime
from bridge.state import Tracked

log = logging.getLogger(__name__)

_LOG_STRAYS = 60.0


@dataclass(slots=True)
class Speaker:
    """Knows the rules, and whether this bridge is the one to speak."""

    runtime: Runtime
    _logged: float | None = None
    _unsaid: int = field(default=0)

    @property
    def rules(self) -> Rules:
        """What the operator asks for, as policy reads it."""
        asked = self.runtime.config.approvals
        return Rules(
            require=asked.require,
            leader=asked.leader,
            takeover_after=timedelta(seconds=asked.takeover_after),
            hold_timeout=timedelta(seconds=asked.hold_timeout),
            dry_run=asked.dry_run,
        )

    def turn(self, known: Tracked) -> int | None:
        runtime = self.runtime
        scope = runtime.config.source.scope
        return turn(known.event, runtime.identity.vm_name, scope, self.rules)

    def concerns(self, known: Tracked) -> bool:
        """Whether this bridge may ever act on it; while the VM's name is unknown it may."""
        return self.runtime.config.source.scope == "all" or known.affected is not False

    def count(self, what: str, reason: str = "") -> None:
        self.runtime.status.count_approval(what, reason)

    def publish(self, told: Outcome, now: datetime) -> CloudEvent:
        self.count(told.kind, told.reason or "")
        level = logging.ERROR if told.kind == "failed" else logging.INFO
        fields = {
            "event_id": told.event_key,
            "approval": told.voice.approval,
            "approver": told.voice.approver,
            "via": told.voice.via,
            "reason": told.reason,
        }
        log.log(level, f"approval.{told.kind}", extra=fields)  # noqa: G004  a stable name
        return outcome(told, self.runtime.identity.observer, now)

    def answer(self, told: Outcome, known: Tracked, now: datetime) -> list[CloudEvent]:
        """Only the bridge that leads on an event says what became of a vote from a bus."""
        if self.turn(known) != 0:
            self.count(told.kind, told.reason or "")
            return []
        return [self.publish(told, now)]

    def stray(self, told: Outcome, now: datetime) -> list[CloudEvent]:
        """What nobody acts on: counted, logged once a minute, and answered only if asked to."""
        if self.runtime.config.approvals.answer_strays:
            return [self.publish(told, now)]
        self.count(told.kind, told.reason or "")
        if self._logged is not None and time.monotonic() - self._logged < _LOG_STRAYS:
            self._unsaid += 1
            return []
        fields = {"reason": told.reason, "detail": told.detail, "via": told.voice.via}
        more = {"event_id": told.event_key, "unsaid": self._unsaid}
        log.warning("approval.stray", extra={**fields, **more})
        self._logged, self._unsaid = time.monotonic(), 0
        return []
