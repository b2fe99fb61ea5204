"""The simulated world: scheduled events and their lives, with an injected clock and no I/O."""

import math
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from bridge.core.model import SCHEDULED, STARTED, Document, ScheduledEvent
from bridge.simulator.world.agenda import Agenda
from bridge.simulator.world.building_blocks import NewEvent, Reschedule, Update
from bridge.simulator.world.enablement import Enabling
from bridge.simulator.world.entries import Entry, changed, first_state
from bridge.simulator.world.faults import Fault, Faults, LiveFault
from bridge.simulator.world.rules import Refused, Unknown, check_new, check_notice, notice_of
from bridge.simulator.world.scenario import Scenario
from bridge.simulator.world.truth import Truth

_IDS = uuid.UUID("0b7d4a0e-7a5e-5c0c-9a53-3f1f6f2f6c55")


class World:
    """What all VMs of the group see. Every change is in the truth before a VM can see it.

    Durations are those of the scenario: the speed divides them. `changed` is called when the next
    appointment may be earlier than before.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        speed: float = 1.0,
        seed: int = 0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        truth: Truth | None = None,
    ) -> None:
        self.scenario = scenario
        self.speed = speed
        self.seed = seed
        self.clock = clock
        self.truth = truth or Truth()
        self.changed: Callable[[], object] = lambda: None
        self.incarnation = scenario.incarnation
        self.entries: dict[str, Entry] = {}
        self.agenda = Agenda()
        self.faults = Faults(self.agenda, seed=seed, speed=speed, tell=self._fault_changed)
        self.enabling = Enabling(
            self.agenda,
            first_call_delay=scenario.first_call_delay / speed,
            events_delay=scenario.events_delay / speed,
            disable_after=scenario.disable_after / speed,
            tell=self._enabling_changed,
        )
        self._lives: dict[str, int] = {}
        self._created = 0
        self._was_off = False

    def scaled(self, seconds: float) -> timedelta:
        return timedelta(seconds=seconds / self.speed)

    def advance(self) -> None:
        """Do everything that is due by now."""
        self.agenda.run(self.clock())

    def document(self) -> Document:
        shown = self.entries.values() if self.enabling.flowing else ()
        return Document(self.incarnation, tuple(entry.event for entry in shown))

    def find(self, reference: str) -> Entry:
        """Find an event by EventId or by name; case does not matter."""
        key = reference.upper()
        if key in self.entries:
            return self.entries[key]
        for entry in self.entries.values():
            if entry.name.upper() == key:
                return entry
        raise Unknown(f"there is no scheduled event {reference!r} now")

    def create(self, plan: NewEvent | None = None, **keys: Any) -> Entry:
        """Announce a scheduled event: a `NewEvent`, or its keys (`type="Reboot", notice="15m"`)."""
        plan = plan or NewEvent.model_validate(keys)
        if self.scenario.strict:
            check_new(plan, pending_user_events=self._pending_user_events())
        name = plan.name or f"event-{self._created + 1}"
        event_id = plan.event_id or self.event_id(name)
        if event_id.upper() in self.entries:
            raise Refused(f"scheduled event {name!r} still exists")
        self._created += 1
        self._lives[event_id.upper()] = life = self._lives.get(event_id.upper(), 0) + 1
        not_before = self._not_before(0 if plan.status == STARTED else notice_of(plan))
        first_vm = self.scenario.vms[0].name
        event = first_state(plan, event_id=event_id, not_before=not_before, first_vm=first_vm)
        return self._announce(Entry(name, life, plan, event, self.clock(), not_before))

    def event_id(self, name: str) -> str:
        """The same for the same scenario, seed and name."""
        return str(uuid.uuid5(_IDS, f"{self.scenario.name}/{self.seed}/{name}")).upper()

    def cancel(self, reference: str) -> Entry:
        return self._remove(self._scheduled(reference, "canceled"), "canceled", cause="canceled")

    def start(self, reference: str) -> Entry:
        return self._start(self._scheduled(reference, "started"), cause="on demand")

    def complete(self, reference: str) -> Entry:
        entry = self.find(reference)
        if entry.status != STARTED:
            raise Refused(f"{entry.name} is {entry.status}; only a Started one can be completed")
        return self._remove(entry, "completed", cause="on demand")

    def reschedule(self, reference: str, notice: str) -> Entry:
        """Move NotBefore to *notice* from now (`"10m"`)."""
        return self.move(Reschedule.model_validate({"event": reference, "notice": notice}))

    def move(self, asked: Reschedule) -> Entry:
        entry = self._scheduled(asked.event, "rescheduled")
        moment = self._not_before(asked.notice)
        if self.scenario.strict:
            given = (moment - entry.announced).total_seconds() * self.speed
            check_notice(entry.event.event_type, given)
        entry.not_before = moment
        return self._replace(entry, replace(entry.event, not_before=moment))

    def update(self, reference: str, **changes: Any) -> Entry:
        """Change `type`, `resources`, `description` or `duration`; other fields stay."""
        return self.change(Update.model_validate({"event": reference, **changes}))

    def change(self, asked: Update) -> Entry:
        entry = self._scheduled(asked.event, "updated")
        return self._replace(entry, changed(entry.event, asked))

    def approve(self, references: Sequence[str], **facts: Any) -> list[str]:
        """Approve these for all their resources; return the EventIds not approved before.

        Raises `Unknown` and does nothing when one of them does not exist. *facts* go to the truth.
        """
        entries = dict.fromkeys(self.find(reference) for reference in references)
        fresh = [e for e in entries if e.status == SCHEDULED and e.approved_at is None]
        for entry in fresh:
            entry.approved_at = self.clock()
        ids = [entry.event.key for entry in fresh]
        facts = {"eventIds": [entry.event.key for entry in entries], "released": ids, **facts}
        self.truth.record(self.clock(), "approval", **{"via": "control", **facts})
        for entry in fresh:
            self._plan_next(entry)
        self.advance()
        return ids

    def fault(self, kind: Fault | str, **keys: Any) -> LiveFault:
        """Damage answers from now on: a `Fault`, or its kind and keys (`"status", count=3`)."""
        fault = kind if isinstance(kind, Fault) else Fault.model_validate({"kind": kind, **keys})
        live = self.faults.add(fault, self.clock())
        self.changed()
        return live

    def clear_faults(self, name: str | None = None) -> int:
        return self.faults.clear(name)

    def disable(self) -> None:
        """Disable the feature, as a day of silence does."""
        self.enabling.disable()

    def touch(self, vm: str) -> datetime:
        """Handle a VM's request: return when it may be answered."""
        ready = self.enabling.touch(vm, self.clock())
        self.changed()
        return ready

    def _not_before(self, notice: float) -> datetime:
        """Round up to a whole second: the wire has no fractions, and the time must be true."""
        moment = self.clock() + self.scaled(notice)
        return datetime.fromtimestamp(math.ceil(moment.timestamp()), UTC)

    def _pending_user_events(self) -> int:
        events = [entry.event for entry in self.entries.values()]
        return sum(e.event_source == "User" and e.status == SCHEDULED for e in events)

    def _announce(self, entry: Entry) -> Entry:
        self.entries[entry.event.key] = entry
        self._plan_next(entry)
        scheduled = entry.status == SCHEDULED
        cause = "announced" if scheduled else "no notice"
        self._happened(entry, "scheduled" if scheduled else "started", cause=cause)
        return entry

    def _scheduled(self, reference: str, verb: str) -> Entry:
        entry = self.find(reference)
        if entry.status != SCHEDULED:
            raise Refused(f"{entry.name} is {entry.status}; only a Scheduled one can be {verb}")
        return entry

    def _plan_next(self, entry: Entry) -> None:
        entry.stop()
        if entry.status == SCHEDULED:
            self._plan_start(entry)
        elif entry.plan.started_for is not None:
            over = self.clock() + self.scaled(entry.plan.started_for)
            entry.next = self.agenda.at(
                over, lambda: self._remove(entry, "completed", cause="over")
            )
        self.changed()

    def _plan_start(self, entry: Entry) -> None:
        when, cause = entry.not_before, "not before"
        if entry.approved_at is not None:
            released = entry.approved_at + self.scaled(entry.plan.starts_after_approval)
            if released < when:
                when, cause = released, "approved"
        entry.next = self.agenda.at(when, lambda: self._start(entry, cause=cause))

    def _start(self, entry: Entry, *, cause: str) -> Entry:
        entry.event = replace(entry.event, status=STARTED, not_before=None)
        self._plan_next(entry)
        self._happened(entry, "started", cause=cause)
        return entry

    def _replace(self, entry: Entry, event: ScheduledEvent) -> Entry:
        same = replace(event, resources=()) == replace(entry.event, resources=())
        same = same and set(event.resources) == set(entry.event.resources)
        if event != entry.event:
            entry.event = event
            self._plan_next(entry)
            self._happened(entry, "reordered" if same else "updated", cause="changed")
        return entry

    def _remove(self, entry: Entry, what: str, *, cause: str) -> Entry:
        del self.entries[entry.event.key]
        entry.stop()
        self._happened(entry, what, cause=cause)
        return entry

    def _happened(self, entry: Entry, what: str, *, cause: str) -> None:
        self.incarnation += 1
        facts = {**entry.facts(), "cause": cause, "documentIncarnation": self.incarnation}
        self.truth.record(self.clock(), what, **facts)
        self.changed()

    def _fault_changed(self, what: str, live: LiveFault) -> None:
        self.truth.record(self.clock(), what, name=live.name, kind=live.fault.kind)

    def _enabling_changed(self, what: str) -> None:
        if what == "enabled" and self._was_off:
            self.incarnation = self.scenario.incarnation
        if what == "flowing" and self.entries:
            self.incarnation += 1
        self._was_off = what == "disabled"
        self.truth.record(self.clock(), what, documentIncarnation=self.incarnation)
