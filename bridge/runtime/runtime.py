"""The running bridge, for the web API and the commands: its parts, and operators' actions."""

import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from bridge.common.clock import Clock
from bridge.config import Config
from bridge.core.cloudevent import CloudEvent
from bridge.core.state import Tracked
from bridge.journal import Journal
from bridge.journal.cursors import (
    DeadLetter,
    dead_letter,
    drop_letter,
    exempt,
    replay_letter,
    replay_sink,
    replayable,
)
from bridge.journal.store import Then
from bridge.plugins import Delivery
from bridge.policy.votes import LocalOutcome
from bridge.runtime.identity import Identity
from bridge.runtime.status import ReloadResult, Status

if TYPE_CHECKING:
    from bridge.policy.judge import Rules

log = logging.getLogger(__name__)

TakeLocal = Callable[[Delivery, str, str | None], Awaitable[list[LocalOutcome]]]
"""Take a vote that was given to this bridge: what, through which channel, from whom."""
ReloadFile = Callable[[str, str], Awaitable[ReloadResult]]
"""Read the configuration file again: who asks, through which channel."""

CALLER_ADDRESS: ContextVar[str | None] = ContextVar("caller_address", default=None)
"""Where the current request comes from; None for what the bridge does on its own."""


@dataclass(slots=True)
class Runtime:
    """Shared by all tasks of one process. Every action of an operator goes through it, audited."""

    config: Config
    journal: Journal
    identity: Identity
    status: Status
    release: str | None = None
    boot_id: str | None = None
    clock: Clock = field(default_factory=Clock)
    take_local: TakeLocal | None = None
    reload: ReloadFile | None = None
    _audited: datetime = field(default=datetime.min.replace(tzinfo=UTC))
    _rules: "tuple[Config, str | None, Rules] | None" = None

    def configure(self, config: Config) -> None:
        """Continue with *config*; objects built from the old one do not change."""
        self.config = self.identity.config = config

    @property
    def version(self) -> str:
        """The version of the bridge, looked up when it is first needed: after the first poll."""
        if self.release is None:
            from importlib.metadata import version  # noqa: PLC0415  opens files, so not earlier

            self.release = version("scheduled-events-bridge")
        return self.release

    @property
    def rules(self) -> "Rules":
        """What the operator requires, as `policy` reads it."""
        config, vm_name = self.config, self.identity.vm_name
        known = self._rules
        if known is None or known[0] is not config or known[1] != vm_name:
            known = self._rules = config, vm_name, _rules(config, vm_name)
        return known[2]

    def rules_for(self, known: Tracked) -> "Rules":
        """The rules for one event; a drill is always a dry run."""
        rules = self.rules
        return replace(rules, dry_run=True) if known.drill else rules

    async def audit(
        self,
        action: str,
        *,
        actor: str,
        via: str,
        detail: Mapping[str, Any],
        sink: str | None = None,
        act: Then | None = None,
    ) -> None:
        """Record `bridge.audited`; its id is unique per second, so a burst is spread out.

        An audit about a *sink* goes to the others only: one that rejects it would get one more
        for each that you drop. *act* is what the audit is about, in the same transaction.
        """

        def then(event_id: str, db: sqlite3.Connection) -> None:
            if sink is not None:
                exempt(db, sink, event_id, time.time())
            if act is not None:
                act(db)

        who = {"actor": actor, "via": via, "address": CALLER_ADDRESS.get()}
        now = self.clock.now()
        moment = max(now, self._audited + timedelta(seconds=1))
        while True:
            self._audited = moment
            said = self._audit_message(action, now, moment, detail, who)
            if await self.journal.append([said], time.time(), partial(then, said.id)):
                break
            moment += timedelta(seconds=1)
        log.info("bridge.audited", extra={"action": action, **who, "detail": detail})

    def _audit_message(
        self,
        action: str,
        now: datetime,
        second: datetime,
        detail: Mapping[str, Any],
        who: Mapping[str, Any],
    ) -> CloudEvent:
        from bridge.core import messages  # noqa: PLC0415  nothing is published before the first poll

        observer = self.identity.observer
        return messages.audited(action, observer, now, detail=detail, second=second, **who)

    async def replay(self, letter_id: str, *, actor: str, via: str) -> bool:
        """Send a dead letter again; False when there is none with that id."""
        return await self._settle_letter(letter_id, "replayed", replay_letter, actor, via)

    async def drop(self, letter_id: str, *, actor: str, via: str) -> bool:
        """Drop a dead letter; False when there is none with that id."""
        return await self._settle_letter(letter_id, "dropped", drop_letter, actor, via)

    async def _settle_letter(
        self,
        letter_id: str,
        done: str,
        act: Callable[[sqlite3.Connection, DeadLetter], None],
        actor: str,
        via: str,
    ) -> bool:
        letter = await self.journal.run(lambda store: dead_letter(store, letter_id))
        if letter is None:
            return False
        await self.audit(
            f"dead-letter.{done}",
            actor=actor,
            via=via,
            detail={
                "deadLetter": letter.id,
                "cloudEvent": letter.event_id,
                "reason": letter.reason,
            },
            sink=letter.sink,
            act=lambda db: act(db, letter),
        )
        return True

    async def replay_sink(self, name: str, *, actor: str, via: str) -> int | None:
        """Send a sink everything that the journal still has; None when there is no such sink.

        A stopped sink resumes.
        """
        if name not in self.status.sinks:
            return None
        count = await self.journal.run(lambda store: replayable(store, name))
        await self.audit(
            "sink.replayed",
            actor=actor,
            via=via,
            detail={"sink": name, "rows": count},
            sink=name,
            act=lambda db: replay_sink(db, name),
        )
        self.status.sinks[name].resume(time.time())
        self.journal.announce()
        return count

    async def resume_sink(self, name: str, *, actor: str, via: str) -> bool | None:
        """Resume a stopped sink; False when it was not stopped, None when there is no such sink."""
        if name not in self.status.sinks:
            return None
        why = self.status.sinks[name].error
        if not self.status.sinks[name].resume(time.time()):
            return False
        self.journal.announce()
        detail = {"sink": name, "stoppedBecause": why}
        await self.audit("sink.resumed", actor=actor, via=via, detail=detail, sink=name)
        return True


def _rules(config: Config, vm_name: str | None) -> "Rules":
    from bridge.policy.judge import Rules  # noqa: PLC0415  nothing is judged before the first poll

    asked = config.approvals
    return Rules(
        require=asked.require,
        leader=asked.leader,
        takeover_after=timedelta(seconds=asked.takeover_after),
        hold_timeout=timedelta(seconds=asked.hold_timeout),
        dry_run=asked.dry_run,
        allow=asked.allow,
        auto=asked.auto,
        vm_name=vm_name,
    )
