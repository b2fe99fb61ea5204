"""Decides which bridge publishes an outcome: every bridge counts it, one publishes it."""

import asyncio
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TypeVar

from bridge.approvals.outcomes import ALARMING, Outcome, outcome
from bridge.core.cloudevent import CloudEvent
from bridge.core.ids import timestamp
from bridge.core.state import Tracked
from bridge.journal import Journal
from bridge.journal.store import Store
from bridge.policy.judge import Judgment, turn
from bridge.runtime.runtime import CALLER_ADDRESS, Runtime
from bridge.telemetry.cloudevents import in_trace

log = logging.getLogger(__name__)

MOST_REFUSALS = 60
"""How many refusals of unverified senders are published per minute; all are counted."""
MOST_CHANGES = 60
"""How many changes of unverified votes are published per minute; first votes always are."""
DROPPED = (
    "duplicate",
    "unchanged",
    "older",
    "not-ours",
    "not-an-approval",
    "retained",
    "other-topic",
    "tombstone",
    "unpublished",
)
"""Why a message, or the outcome of a vote, is only counted."""
_LOG_STRAYS = 60.0
T = TypeVar("T")
Effect = Callable[[], None]
_LATER: ContextVar[list[Effect] | None] = ContextVar("later", default=None)


async def in_journal(journal: Journal, work: Callable[[Store], T]) -> T:
    """Run *work* in the journal's thread, where votes are assessed and recorded.

    What it counts, logs and shows follows in the event loop, even if the caller is canceled, and
    only if *work* was committed.
    """
    loop, context = asyncio.get_running_loop(), copy_context()

    def run(store: Store) -> T:
        with _effects() as later:
            result = work(store)
        loop.call_soon_threadsafe(_do_all, later, context=context)
        return result

    return await journal.durably(run)


def _do_all(later: list[Effect]) -> None:
    for effect in later:
        effect()


@contextmanager
def _effects() -> Generator[list[Effect]]:
    later: list[Effect] = []
    token = _LATER.set(later)
    try:
        yield later
    finally:
        _LATER.reset(token)


def _do(effect: Effect) -> None:
    """Do it now, or once the votes are committed."""
    later = _LATER.get()
    if later is None:
        effect()
    else:
        later.append(effect)


@dataclass(slots=True)
class _Quota:
    """Allows something a number of times per minute."""

    _used: int = 0
    _ends: float = 0.0

    def is_used_up(self, most: int, now: float) -> bool:
        """Count one more; whether that is more than *most*. *now* is monotonic."""
        if now >= self._ends:
            self._ends, self._used = now + 60.0, 0
        self._used += 1
        return self._used > most


@dataclass(slots=True)
class Publisher:
    """Knows whether this bridge is the one to publish."""

    runtime: Runtime
    _logged: float | None = None
    _unlogged: int = field(default=0)
    _refusals: _Quota = field(default_factory=_Quota)
    _changes: _Quota = field(default_factory=_Quota)

    def turn(self, known: Tracked) -> int | None:
        """Our place among the bridges; 0 for our own drill, which no other bridge knows."""
        if known.drill:
            return 0
        runtime = self.runtime
        scope = runtime.config.source.scope
        return turn(known.event, runtime.identity.vm_name, scope, self.runtime.rules)

    def place(self, known: Tracked, judgment: Judgment) -> int | None:
        """In which turn we act; 0 for a vote sent only to us, which no other bridge knows."""
        mine = self.turn(known)
        return 0 if mine and judgment.local else mine

    def concerns(self, known: Tracked) -> bool:
        """Whether this bridge may act on the event; while the VM's name is unknown, it may."""
        return self.runtime.config.source.scope == "all" or known.affected is not False

    def count(self, what: str, reason: str = "") -> None:
        _do(partial(self.runtime.status.count_approval, what, reason))

    def _count(self, told: Outcome) -> None:
        """Count an outcome. Drills are not counted: they must not cause alerts."""
        if told.known is None or not told.known.drill:
            self.count(told.kind, told.reason or "")

    def publish(self, told: Outcome, now: datetime) -> CloudEvent:
        self._count(told)
        _log(told, _level(told))
        trace = self.runtime.tracing.vote(told.cause.key, told.event_key)
        return in_trace(outcome(told, self.runtime.identity.observer, now), trace)

    def turn_away(self, told: Outcome) -> None:
        """Count and log a vote that is only answered: nothing proves who sent it."""
        self._count(told)
        if not self._too_much(told):
            _log(told, _level(told))

    def answer(
        self,
        told: Outcome,
        known: Tracked,
        now: datetime,
        *,
        local: bool = False,
        counted: bool = False,
    ) -> list[CloudEvent]:
        """Publish the outcome of a local vote, or of a vote from a bus if we lead on the event.

        A vote of the same approver *counted* before: this one, or the one that it replaces.
        """
        if told.reason == "malformed" and not local:
            return self.stray(told, now)
        leads = local or self.turn(known) == 0
        if not leads or self._too_much(told, counted=counted):
            self._count(told)
            _log(told, logging.DEBUG)
            if told.kind == "refused":
                self._show(told, now, stray=False)
            return []
        return [self.publish(told, now)]

    def _show(self, told: Outcome, now: datetime, *, stray: bool) -> None:
        """Let operators see a refusal that is not published here."""
        refused = outcome(told, self.runtime.identity.observer, now)
        _do(partial(self.runtime.status.refusals.add, refused, stray=stray))

    def _too_much(self, told: Outcome, *, counted: bool = False) -> bool:
        """Keep unverified senders from filling the journal with what one of them can repeat.

        The end of a vote that counted is always published: its sender must learn about it.
        """
        if told.cause.verified or told.kind not in {"recorded", "refused"}:
            return False
        now = self.runtime.clock.monotonic()
        if told.kind == "recorded":
            return counted and self._changes.is_used_up(MOST_CHANGES, now)
        return not counted and self._refusals.is_used_up(MOST_REFUSALS, now)

    def left_out(self, count: int) -> None:
        """Count outcomes of unverified votes for which the journal has no space."""
        for _ in range(count):
            self.count("dropped", "unpublished")

    def stray(self, told: Outcome, now: datetime) -> list[CloudEvent]:
        """Handle a message that nobody acts on: count it, log it, publish it only if configured."""
        if self.runtime.config.approvals.answer_strays and not self._too_much(told):
            return [self.publish(told, now)]
        self.count(told.kind, told.reason or "")
        self._show(told, now, stray=True)
        if self._logged is not None and self.runtime.clock.monotonic() - self._logged < _LOG_STRAYS:
            self._unlogged += 1
            return []
        fields = {"reason": told.reason, "detail": told.detail, "via": told.cause.via}
        more = {"event_id": told.event_key, "unlogged": self._unlogged}
        _do(lambda: log.warning("approval.stray", extra={**fields, **more}))
        self._logged, self._unlogged = self.runtime.clock.monotonic(), 0
        return []


def _level(told: Outcome) -> int:
    if told.kind == "failed":
        return logging.ERROR
    return logging.WARNING if told.reason in ALARMING else logging.INFO


def _log(told: Outcome, level: int) -> None:
    if log.isEnabledFor(level):
        _do(partial(_write_line, told, level))


def _write_line(told: Outcome, level: int) -> None:
    """One line that answers who decided what, about which VMs, until when, and why."""
    cause, event = told.cause, told.known.event if told.known else None
    fields = {
        "event_id": told.event_key,
        "type": event and event.event_type,
        "vms": list(event.resources) if event else [],
        "not_before": timestamp(event.not_before) if event and event.not_before else None,
        "approval": cause.approval,
        "decision": cause.decision,
        "approver": cause.approver,
        "verified": cause.verified,
        "resource": cause.resource,
        "via": cause.via,
        "address": CALLER_ADDRESS.get(),
        "reason": told.reason,
        "detail": told.detail,
        "dry_run": told.dry_run,
        "drill": told.known is not None and told.known.drill,
    }
    log.log(level, f"approval.{told.kind}", extra=fields)  # noqa: G004  a stable name
