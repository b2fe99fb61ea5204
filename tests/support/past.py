"""A past that a bridge finds in its journal when it starts: events, votes, outcomes and deliveries."""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from support.world import World, started

from bridge.approvals.outcomes import Outcome, cause_of, outcome, refused
from bridge.core import messages
from bridge.core.cloudevent import CloudEvent
from bridge.core.model import Instance, ScheduledEvent
from bridge.core.observer import Observer
from bridge.journal import Journal, Settlement
from bridge.journal.votes import Receipt, receive
from bridge.policy.judge import Judgment
from bridge.policy.votes import Announced, Refusal, Vote

SOON = timedelta(milliseconds=24)


@dataclass
class Past:
    """Plays a history into a journal, at times of its own, as the bridge would have recorded it."""

    journal: Journal
    vm: str
    sinks: Sequence[str]
    world: World
    _numbers: count = field(default_factory=lambda: count(1))

    @property
    def observer(self) -> Observer:
        return Observer(instance=Instance(name=self.vm, location="westeurope"))

    async def see(self, at: datetime, *events: ScheduledEvent) -> None:
        """A document with these events is read at that time."""
        found = self.world.see(*events, after=at - self.world.facts.now)
        told = [messages.transition(one, self.observer, at, 1) for one in found]
        await self.journal.commit(self.world.state, told, at.timestamp())
        await self._deliver(told, at)

    async def vote(self, at: datetime, event: ScheduledEvent, approver: str, **more: Any) -> Vote:
        """A vote is recorded; `missing` says who has not voted yet."""
        missing, number = more.pop("missing", ()), next(self._numbers)
        usual = {"decision": "approve", "resource": "", "via": "orders-bus", "verified": True}
        about = Announced(event.event_type, event.resources, event.not_before)
        said = {"approval": f"vote-{number}", "key": f"/past\x1f{number}", "at": at, "about": about}
        cast = Vote(event_key=event.key, life=1, approver=approver, **{**usual, **said, **more})
        judged = Judgment(satisfied=not missing, missing=tuple(missing))
        await self._outcome(
            at, cast, Outcome("recorded", event.key, cause_of(cast), judgment=judged)
        )
        return cast

    async def refuse(
        self, at: datetime, event: ScheduledEvent, approver: str, reason: str, detail: str
    ) -> None:
        cast = await self.vote(at, event, "")
        told = refused(
            replace(cast, approver=approver), Refusal(reason, detail), self._known(event), ""
        )
        await self._outcome(at, None, told)

    async def grant(self, at: datetime, event: ScheduledEvent, last: Vote) -> None:
        judged = Judgment(satisfied=True, have=event.resources)
        known = self._known(event)
        told = Outcome("granted", event.key, cause_of(last), known, judged, posted_at=at)
        await self._outcome(at, None, told)

    async def end(self, at: datetime, event: ScheduledEvent, lasted: timedelta) -> None:
        """It starts, and ends so much later."""
        await self.see(at, started(event))
        await self.see(at + lasted)

    def _known(self, event: ScheduledEvent) -> Any:
        return self.world.state.tracked[event.key]

    async def _outcome(self, at: datetime, vote: Vote | None, told: Outcome) -> None:
        event = outcome(replace(told, known=self._known_of(told)), self.observer, at)
        receipt = Receipt(votes=[vote] if vote else [], events=[event])
        await self.journal.run(lambda store: receive(store, receipt, at.timestamp()))
        await self._deliver([event], at)

    def _known_of(self, told: Outcome) -> Any:
        return self.world.state.tracked[told.event_key or ""]

    async def _deliver(self, told: Sequence[CloudEvent], at: datetime) -> None:
        for number, sink in enumerate(self.sinks, 1):
            done = [Settlement(one.id, "delivered") for one in told]
            await self.journal.settle(sink, done, (at + number * SOON).timestamp())


@contextlib.asynccontextmanager
async def remembered(
    state_dir: Path, vm: str, sinks: Sequence[str], since: datetime
) -> AsyncGenerator[Past]:
    """A journal in that folder, before the bridge opens it."""
    state_dir.mkdir(parents=True, exist_ok=True)
    journal = Journal(state_dir / "journal.db")
    await journal.open()
    try:
        await journal.register(list(sinks), since.timestamp())
        yield Past(journal, vm, sinks, World(now=since.astimezone(UTC), vm_name=vm))
    finally:
        await journal.close()
