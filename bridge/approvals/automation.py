"""What the bridge does on its own: votes by the operator's rules, and reminders."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bridge.approvals.assessment import Assessor
from bridge.approvals.outcomes import Cause, Outcome
from bridge.approvals.publisher import Publisher, in_journal
from bridge.common.fields import write_duration
from bridge.core.ids import digest
from bridge.core.model import SCHEDULED
from bridge.core.state import State, Tracked
from bridge.journal.grants import grant_of, remind, reminded
from bridge.journal.store import Store
from bridge.journal.votes import receive, votes
from bridge.policy.auto import chosen
from bridge.policy.judge import Judgment, as_vote, judge
from bridge.policy.require import ANY_APPROVER
from bridge.policy.votes import AUTO, REMIND, Approval, Given, Vote
from bridge.runtime.runtime import Runtime

_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Automation:
    """Examines every pending event, whether or not it has votes."""

    runtime: Runtime
    publisher: Publisher
    assessor: Assessor

    @property
    def needed(self) -> bool:
        asked = self.runtime.config.approvals
        return bool(asked.auto or asked.remind)

    async def look(self, state: State) -> datetime | None:
        """Vote and remind where it is due; return when the next reminder is due."""
        moments = []
        for known in state.tracked.values():
            if _is_open(known):
                await self._vote(known)
                moments.append(await self._remind(known))
        return min((moment for moment in moments if moment), default=None)

    async def _vote(self, known: Tracked) -> None:
        resource = chosen(self.runtime.rules.auto, known.event, self.runtime.identity.vm_name)
        if resource is None:
            return
        now = self.runtime.clock.now()
        vote = _by_rule(known, resource, self.runtime.identity.vm_name or "", now)

        def cast(store: Store) -> bool:
            receipt = self.assessor.cast(store, vote, known, now).receipt
            if receipt.votes:
                receive(store, receipt, self.runtime.clock.timestamp())
            return bool(receipt.votes)

        if await in_journal(self.runtime.journal, cast):
            self.runtime.journal.announce()

    async def _remind(self, known: Tracked) -> datetime | None:
        """Publish who is missing, once per reminder; if several have passed, only the latest."""
        event, now = (known.event.key, known.life), self.runtime.clock.now()
        passed, upcoming = self._reminders(known, now)
        over = await self.runtime.journal.run(lambda store: reminded(store, event))
        if fresh := [name for name in passed if name not in over]:
            told = await self._due(known, fresh[-1], now)
            said = [] if told is None else self.publisher.answer(told, known, now)
            await self.runtime.journal.durably(
                lambda store: remind(store, event, fresh, said, self.runtime.clock.timestamp())
            )
            self.runtime.journal.announce()
        return upcoming

    def _reminders(self, known: Tracked, now: datetime) -> tuple[list[str], datetime | None]:
        """The reminders due since the event was announced, and when the next one is due."""
        passed, upcoming = [], []
        for seconds, moment in self._moments(known):
            if moment > now:
                upcoming.append(moment)
            elif known.since is None or moment >= known.since:
                passed.append(write_duration(seconds))
        return passed, min(upcoming, default=None)

    def _moments(self, known: Tracked) -> Iterator[tuple[float, datetime]]:
        """The reminders in order of time, earliest first; none before the calendar begins.

        .NET writes the year 1 for "no time".
        """
        due = known.event.not_before
        for seconds in self.runtime.config.approvals.remind:
            before = timedelta(seconds=seconds)
            if due is not None and due - _EARLIEST >= before:
                yield seconds, due - before

    async def _due(self, known: Tracked, reminder: str, now: datetime) -> Outcome | None:
        event, rules = (known.event.key, known.life), self.runtime.rules_for(known)
        cast, told = await self.runtime.journal.run(
            lambda store: (votes(store, *event), grant_of(store, event))
        )
        judgment = judge(known.event, cast, rules, now)
        if told is not None or judgment.satisfied or now >= (known.event.not_before or now):
            return None
        return Outcome(
            "due",
            known.event.key,
            Cause(None, reminder, None, None, REMIND),
            known,
            judgment,
            str(rules.require),
            detail=_who(judgment, reminder),
            dry_run=rules.dry_run,
        )


def _is_open(known: Tracked) -> bool:
    return known.announced and known.event.status == SCHEDULED and known.missing_since is None


def _who(judgment: Judgment, reminder: str) -> str:
    missing = f"missing: {', '.join(judgment.missing)}" if judgment.missing else None
    parts = [
        "nobody has approved" if judgment.missing == ANY_APPROVER else missing,
        f"held by: {', '.join(judgment.holds)}" if judgment.holds else None,
    ]
    return f"Less than {reminder} before notBefore; {'; '.join(part for part in parts if part)}."


def _by_rule(known: Tracked, resource: str, vm_name: str, now: datetime) -> Vote:
    """A vote by a rule. Its key contains the event's state, so another state gets another vote."""
    key = f"auto:{vm_name}:{known.life}:{digest(known.event)[:16]}"
    approval = Approval(known.event.event_id, key, key, resource=resource or None)
    return as_vote(Given(approval, AUTO, now, identity=AUTO), known.event, known.life, now)
